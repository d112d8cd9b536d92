//go:build linux

package extender

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
)

const (
	imageV1, imageV2 = "localhost/pmk-extender:v1", "localhost/pmk-extender:v2"
	group            = "workers"
	held, free       = "held", "free"
)

// extenderFile has an extender that lets nothing run in one namespace, and elsewhere prefers the node with the least load.
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
      args: {prometheus: {url: "http://%s"}, interval: 1s, staleAfter: 30s, window: 10s, promises: {disabled: true}}
`

func TestLifeOfAnExtenderOnAMaster(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			m := up(t, release)
			load := prometheus.StartExporter(t, workers...)
			server := prometheus.New(t, m.gateway, time.Second, load, map[string]string{workers[0]: workers[0], workers[1]: workers[1]})
			server.Start(t.Context(), t)
			m.build(t, imageV1, "--extender")
			m.build(t, imageV2, "--extender")
			m.build(t, "localhost/"+scheduler+":v1", "--branch", release)
			m.pmkSched(t, "deploy", "--name", scheduler, "--image", "localhost/"+scheduler+":v1")
			for name, field := range map[string]string{"service": "nodeSelector: {kubernetes.io/hostname: " + m.node + "}", "sidecar": "sidecar: true"} {
				t.Run(name, func(t *testing.T) {
					file := filepath.Join(t.TempDir(), "pmk-sched.yaml")
					if err := os.WriteFile(file, fmt.Appendf(nil, extenderFile, field, server.Address), 0o600); err != nil {
						t.Fatal(err)
					}
					m.life(t, load, file)
				})
			}
			m.pmkSched(t, "uninstall", "--name", scheduler, "--yes")
			if left := m.left(t, scheduler); left != "" {
				t.Errorf("left of the scheduler: %s", left)
			}
		})
	}
}

// life deploys the extender, and sees it obeyed, restarted and gone.
func (m *master) life(t *testing.T, load *prometheus.Exporter, file string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, namespace := range []string{held, free} {
		m.Namespace(ctx, t, namespace)
	}
	before := m.schedulerState(t)
	if !strings.Contains(before, "localhost/"+scheduler) {
		t.Fatalf("the scheduler's state is not seen: %s", before)
	}
	m.pmkSched(t, "extender", "deploy", "-f", file, "--for", scheduler)
	m.Create(ctx, t, held, controlplane.Pod(scheduler, group, "p"))
	m.obeyed(ctx, t, load)
	m.pmkSched(t, "extender", "restart", "--name", extender, "--image", imageV2)
	controlplane.Eventually(ctx, t, "the pods are of the new image", func(context.Context) (bool, string) {
		images := m.kubectl(t, "get", "pods", "-n", "kube-system", "-o", "jsonpath={.items[*].spec.containers[*].image}")
		return strings.Contains(images, imageV2) && !strings.Contains(images, imageV1), images
	})
	m.obeyed(ctx, t, load)
	m.pmkSched(t, "extender", "uninstall", "--name", extender, "--yes")
	if left := m.left(t, extender); left != "" {
		t.Errorf("left of the extender: %s", left)
	}
	if diff := cmp.Diff(before, m.schedulerState(t)); diff != "" {
		t.Errorf("the scheduler is not what it was before (-before +after):\n%s", diff)
	}
	controlplane.Eventually(ctx, t, "the pod that was held is bound", func(ctx context.Context) (bool, string) {
		m.Touch(ctx, t, group)
		unbound := m.Unbound(ctx, t, held)
		return unbound == 0, fmt.Sprint(unbound, m.Failures(ctx, t, held, "p"))
	})
	m.empty(ctx, t)
}

// obeyed fails the test unless pods are held back, and placed on the idle one of two workers, whichever it is.
func (m *master) obeyed(ctx context.Context, t *testing.T, load *prometheus.Exporter) {
	t.Helper()
	controlplane.Eventually(ctx, t, "the event of the held pod says why", func(ctx context.Context) (bool, string) {
		said := strings.Join(m.Failures(ctx, t, held, "p"), "; ")
		return strings.Contains(said, "2 nothing runs here"), said
	})
	for i, idle := range workers {
		load.Load(map[string]float64{idle: 0, workers[1-i]: 1})
		row := 0
		controlplane.Eventually(ctx, t, "three pods in a row are placed on "+idle, func(ctx context.Context) (bool, string) {
			name := fmt.Sprintf("p-%d", time.Now().UnixNano())
			got := m.Place(ctx, t, free, controlplane.Pod(scheduler, group, name))
			row++
			if got != idle {
				row = 0
			}
			return row == 3, "the last is on " + got
		})
	}
	if unbound := m.Unbound(ctx, t, held); unbound != 1 {
		t.Errorf("%d pods are held", unbound)
	}
}

// empty deletes the pods of the test and waits until they are gone.
func (m *master) empty(ctx context.Context, t *testing.T) {
	t.Helper()
	none := int64(0)
	for _, namespace := range []string{held, free} {
		pods := m.Kube.CoreV1().Pods(namespace)
		if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := pods.List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Kube.CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// kinds are all that pmk-sched makes.
const kinds = "deployments,pods,services,poddisruptionbudgets,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases"

// left are the objects of a name that are still there.
func (m *master) left(t *testing.T, name string) (left string) {
	t.Helper()
	for range 50 {
		left = m.kubectl(t, "get", kinds, "-A", "-l", "app.kubernetes.io/instance="+name, "-o", "name")
		if !strings.Contains(left, "pod/") {
			break // pods take a moment to end
		}
		time.Sleep(200 * time.Millisecond)
	}
	return strings.TrimSpace(left)
}

// schedulerState is what the scheduler runs as, and what it may do.
func (m *master) schedulerState(t *testing.T) string {
	t.Helper()
	const own = "-l=app.kubernetes.io/instance=" + scheduler
	return m.kubectl(t, "get", "deployments", "-n", "kube-system", own, "-o", "jsonpath={range .items[*]}{.spec}{end}") +
		m.kubectl(t, "get", "serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings", "-A", own, "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.rules} {.subjects}{end}")
}
