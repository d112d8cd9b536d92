//go:build linux && (cases || faults || labs)

package plugins

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// pod is the one pod of the deployed scheduler.
func (n *node) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	list, err := n.Kube.CoreV1().Pods("kube-system").List(run.Context(t), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + scheduler, FieldSelector: "status.phase=Running",
	})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("the scheduler has %d pods: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// metrics reads the metrics of the scheduler from its own port, which may be in the pods' network.
func (n *node) metrics(t *testing.T) controlplane.Metrics {
	t.Helper()
	pod, port := n.pod(t), ""
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if value, ok := strings.CutPrefix(arg, "--secure-port="); ok {
				port = value
			}
		}
	}
	// The API server sends no credentials: see OpenMetrics.
	text, err := n.Kube.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
		Name("https:" + pod.Name + ":" + port).SubResource("proxy").Suffix("metrics").DoRaw(run.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return controlplane.Metrics(text)
}

// loadSources returns how many metrics LoadAware can read, -1 if it does not count them.
func (n *node) loadSources(t *testing.T) float64 {
	t.Helper()
	if up, found := n.metrics(t).By(t, "pmk_sched_loadaware_up", "")[""]; found {
		return up
	}
	return -1
}
