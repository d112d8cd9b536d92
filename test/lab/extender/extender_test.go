//go:build linux && (cases || faults || labs)

package extender

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	imageV1, imageV2 = "localhost/pmk-extender:v1", "localhost/pmk-extender:v2"
	group            = "workers"
	held, free       = "extender-held", "extender-free"
)

// extenderFile has an extender that lets nothing run in one namespace, and elsewhere prefers the
// node with the least load.
const extenderFile = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: ` + scheduler + `}
spec:
  extenders:
  - name: ` + extender + `
    image: ` + imageV1 + `
    weight: 10
    ignorable: false
    httpTimeout: 5s
    %s
    policies:
    - name: BlockAll
      args: {namespaces: [` + held + `], message: nothing runs here}
    - name: LoadAware
      args: {prometheus: {url: "http://%s"}, interval: 1s, staleAfter: 30s, window: 5s, expectedLoad: {disabled: true}}
`

func TestLifeOfAnExtender(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.Release, func(t *testing.T) {
			n := connect(t, labOf(t, s))
			load := prometheus.StartExporter(t, workers...)
			server := prometheus.New(t, n.Gateway(t), time.Second, load,
				map[string]string{workers[0]: workers[0], workers[1]: workers[1]})
			server.Start(t.Context(), t)
			n.Load(t, imageV1, "extender")
			n.Exec(t, "ctr", "-n", "k8s.io", "images", "tag", "--force", imageV1, imageV2).OK(t)
			n.Deploy(t, scheduler, n.Image(t))
			for name, field := range map[string]string{"service": "replicas: 2", "sidecar": "sidecar: true"} {
				t.Run(name, func(t *testing.T) {
					n.life(t, load, run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(extenderFile, field, server.Address)))
				})
			}
		})
	}
}

// life deploys the extender, and sees it obeyed, restarted and gone.
func (n *node) life(t *testing.T, load *prometheus.Exporter, file string) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	for _, namespace := range []string{held, free} {
		n.Namespace(ctx, t, namespace)
	}
	before := n.schedulerState(t)
	if !strings.Contains(before, "localhost/scheduler") {
		t.Fatalf("the scheduler's state is not seen: %s", before)
	}
	said := n.extender(t, "deploy", "-f", file, "--for", scheduler)
	if service := !strings.Contains(readFile(t, file), "sidecar: true"); strings.Contains(said,
		"✓ prove that scheduler "+scheduler+" calls extender "+extender) != service {
		t.Errorf("the proof that the scheduler calls it:\n%s", said)
	}
	n.Create(ctx, t, held, controlplane.Pod(scheduler, group, "p"))
	n.obeyed(ctx, t, load)
	n.extender(t, "restart", "--name", extender, "--image", imageV2)
	run.Eventually(t, "the pods are of the new image", func(context.Context) (bool, string) {
		images := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-o", "jsonpath={.items[*].spec.containers[*].image}")
		return strings.Contains(images, imageV2) && !strings.Contains(images, imageV1), images
	})
	n.obeyed(ctx, t, load)
	n.extender(t, "uninstall", "--name", extender, "--yes")
	if left := n.left(t, extender); left != "" {
		t.Errorf("left of the extender: %s", left)
	}
	if diff := cmp.Diff(before, n.schedulerState(t)); diff != "" {
		t.Errorf("the scheduler changed (-before +after):\n%s", diff)
	}
	run.Eventually(t, "the pod that was held is bound", func(ctx context.Context) (bool, string) {
		n.Touch(ctx, t, group)
		unbound := n.Unbound(ctx, t, held)
		return unbound == 0, fmt.Sprint(unbound, n.Failures(ctx, t, held, "p"))
	})
	n.empty(ctx, t)
}

// obeyed fails the test unless pods are held back, and placed on the idle one of two workers,
// whichever it is. Until the extender knows the load pods may go anywhere; from the first batch on
// that is placed right, all are.
func (n *node) obeyed(ctx context.Context, t *testing.T, load *prometheus.Exporter) {
	t.Helper()
	run.Eventually(t, "the event of the held pod says why", func(ctx context.Context) (bool, string) {
		said := strings.Join(n.Failures(ctx, t, held, "p"), "; ")
		return strings.Contains(said, "2 nothing runs here"), said
	})
	for i, idle := range workers {
		load.Load(map[string]float64{idle: 0, workers[1-i]: 1})
		run.Eventually(t, "pods are placed on "+idle, func(ctx context.Context) (bool, string) {
			placed := n.placeBatch(ctx, t)
			return placed[idle] == batch, fmt.Sprint(placed)
		})
		if placed := n.placeBatch(ctx, t); placed[idle] != batch {
			t.Errorf("pods are placed on %v, want all on %s", placed, idle)
		}
	}
	if unbound := n.Unbound(ctx, t, held); unbound != 1 {
		t.Errorf("%d pods are held back, want 1", unbound)
	}
}

// batch is how many pods are placed to see where they go: by chance all go to one of two nodes once
// in a thousand times.
const batch = 10

// placeBatch places pods and counts them by node.
func (n *node) placeBatch(ctx context.Context, t *testing.T) map[string]int {
	t.Helper()
	placed := map[string]int{}
	for range batch {
		placed[n.Place(ctx, t, free, controlplane.Pod(scheduler, group, fmt.Sprintf("p-%d", time.Now().UnixNano())))]++
	}
	return placed
}

// empty deletes the pods of the test and waits until they are gone.
func (n *node) empty(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, namespace := range []string{held, free} {
		controlplane.DeletePods(ctx, t, n.Node.Kube, namespace)
		if err := n.Node.Kube.CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// schedulerState returns the spec of the scheduler's Deployment and its RBAC objects.
func (n *node) schedulerState(t *testing.T) string {
	t.Helper()
	const own = "-l=app.kubernetes.io/instance=" + scheduler
	return n.Kubectl(t, "get", "deployments", "-n", "kube-system", own, "-o", "jsonpath={range .items[*]}{.spec}{end}") +
		n.Kubectl(t, "get", "serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings", "-A", own, "-o",
			"jsonpath={range .items[*]}{.kind} {.metadata.name} {.rules} {.subjects}{end}")
}

// defaultFile has an extender that lets nothing run in one namespace.
const defaultFile = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: any}
spec:
  extenders:
  - name: %s
    image: %s
    ignorable: true
    httpTimeout: 5s
    policies:
    - name: BlockAll
      args: {namespaces: [%s], message: not by default}
`

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An extender for the default scheduler, whose static pod gets its configuration: pods that name no
// scheduler are held back, and uninstall restores the original manifest.
func TestExtenderForTheDefaultScheduler(t *testing.T) {
	const name, namespace = "default-asked", "extender-default"
	n := connect(t, labs.Exclusive(t, "kubeadm"))
	ctx := run.Context(t)
	n.Namespace(ctx, t, namespace)
	n.Load(t, imageV1, "extender")
	original := n.defaultManifest(t)
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(defaultFile, name, imageV1, namespace))
	if said := n.extender(t, "deploy", "-f", file, "--default", "--yes"); !strings.Contains(said,
		"✓ prove that scheduler default-scheduler calls extender "+name) {
		t.Errorf("deploy did not prove that the scheduler calls it:\n%s", said)
	}
	n.Create(ctx, t, namespace, controlplane.Pod("", group, "p"))
	run.Eventually(t, "the event of the pod says why it is held back", func(ctx context.Context) (bool, string) {
		said := strings.Join(n.Failures(ctx, t, namespace, "p"), "; ")
		return strings.Contains(said, "2 not by default"), said
	})
	n.PMKSched(t, "verify", "--default").OK(t)
	n.extender(t, "uninstall", "--name", name, "--yes")
	if diff := cmp.Diff(original, n.defaultManifest(t)); diff != "" {
		t.Errorf("the manifest is not the original one (-original +now):\n%s", diff)
	}
	if left := n.left(t, name); left != "" {
		t.Errorf("left of the extender: %s", left)
	}
	run.Eventually(t, "the pod is bound", func(ctx context.Context) (bool, string) {
		n.Touch(ctx, t, group)
		return n.Unbound(ctx, t, namespace) == 0, strings.Join(n.Failures(ctx, t, namespace, "p"), "; ")
	})
	n.Clear(t, namespace)
}

// defaultManifest reads the manifest of the default scheduler.
func (n *node) defaultManifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(n.Path("/etc/kubernetes/manifests/kube-scheduler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
