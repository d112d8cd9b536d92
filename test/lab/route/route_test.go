//go:build linux

// Package route tests a route in a cluster with a real kubelet: by the webhook in pods of its own,
// and with the controller that ends it when the scheduler is lost.
package route

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// self is the image of pmk-sched.
const self = "localhost/pmk-sched:test"

// installController installs the controller with a part of admission control on the control-plane
// node: the simulated workers would play its pods.
func installController(t *testing.T, n *labs.Node, parts string) {
	t.Helper()
	n.Load(t, self, "self")
	n.Kubectl(t, "taint", "nodes", "-l", "type=kwok", "simulated=:NoSchedule")
	t.Cleanup(func() { n.Kubectl(t, "taint", "nodes", "-l", "type=kwok", "simulated-") })
	file := "/root/controller.yaml"
	n.PMKSched(t, "controller", "render", "--image", self, "--admission", parts, "--to-file", file).OK(t)
	t.Cleanup(func() { n.Kubectl(t, "delete", "--wait", "-f", file) })
	n.Kubectl(t, "apply", "-f", file)
	for _, name := range []string{controller.Name, "pmk-sched-admission"} {
		n.Kubectl(t, "wait", "--for=condition=Available", "--timeout=3m", "-n", controller.DefaultNamespace, "deployment/"+name)
	}
}

const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: simulated, operator: Exists}]
      nodeSelector: {type: kwok}
      containers: [{name: main, image: "localhost/none:v1"}]
`

// schedulers counts the bound pods of a namespace by their scheduler.
func schedulers(ctx context.Context, n *labs.Node, namespace string) (bound map[string]int, waiting int, err error) {
	pods, err := n.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	bound = map[string]int{}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			waiting++
		} else {
			bound[pods.Items[i].Spec.SchedulerName]++
		}
	}
	return bound, waiting, nil
}

func awaitBound(t *testing.T, n *labs.Node, namespace, scheduler string, pods int) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("%s binds %d pods", scheduler, pods), func(ctx context.Context) (bool, string) {
		bound, waiting, err := schedulers(ctx, n, namespace)
		return err == nil && waiting == 0 && bound[scheduler] == pods, fmt.Sprint(bound, waiting, err)
	})
}

func TestPodsOfALostSchedulerAreScheduledByTheDefaultOne(t *testing.T) {
	n, name := labs.Exclusive(t, lab.LayoutPMK), labs.SchedulerName(t)
	installController(t, n, "route")
	namespaces := []string{name + "-in", name + "-out"}
	for _, namespace := range namespaces {
		n.Kubectl(t, "create", "namespace", namespace)
		t.Cleanup(func() { n.Kubectl(t, "delete", "namespace", "--wait=false", namespace) })
	}
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  image: {reference: %q}
  replicas: 1
  route: {namespaces: [%s], onFailure: Release, failureAfter: 20s}
`, name, n.Image(t), namespaces[0]))
	n.UninstallLater(t, name)
	n.PMKSched(t, append([]string{"deploy", "-f", file, "--port", n.Port(t)}, labs.Stable("1s")...)...).OK(t).
		Prints(t, "the route is proven: a new pod in namespace "+namespaces[0]+" gets scheduler "+name)

	for _, namespace := range namespaces {
		n.Apply(t, fmt.Sprintf(workload, namespace, 5))
	}
	awaitBound(t, n, namespaces[0], name, 5)
	awaitBound(t, n, namespaces[1], corev1.DefaultSchedulerName, 5)
	n.PMKSched(t, "status", name).OK(t).Prints(t, "5 pods routed: 5 bound, 0 waiting")
	pods, err := n.Kube.CoreV1().Pods(namespaces[0]).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.PMKSched(t, "explain", pods.Items[0].Name, "-n", namespaces[0]).OK(t).Prints(t, "routed to scheduler "+name)

	n.Scale(t, name, 0)
	lost := time.Now()
	n.Apply(t, fmt.Sprintf(workload, namespaces[0], 25))
	run.Eventually(t, "the default scheduler binds the pods that waited", func(ctx context.Context) (bool, string) {
		bound, waiting, err := schedulers(ctx, n, namespaces[0])
		return err == nil && waiting == 0 && bound[name] == 5 && bound[corev1.DefaultSchedulerName] == 20,
			fmt.Sprint(bound, waiting, err)
	})
	t.Logf("the pods that waited were bound %s after the scheduler was lost", time.Since(lost).Round(time.Second))
	n.PMKSched(t, "status", name).Fails(t, 3, "suspended since", "[route-suspended]")
}
