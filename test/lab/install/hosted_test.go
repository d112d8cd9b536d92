//go:build linux

package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// spread fails the test unless a scheduler has two ready replicas, in different zones, as pods that
// managed clusters accept and that nothing evicts at once. After a rollout the pods of the former
// revision may still end.
func spread(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	var pods *corev1.PodList
	run.Eventually(t, "two replicas exist", func(ctx context.Context) (bool, string) {
		var err error
		if pods, err = n.Kube.CoreV1().Pods("kube-system").List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name}); err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == 2, fmt.Sprint(len(pods.Items), " pods")
	})
	zones := map[string]bool{}
	for _, pod := range pods.Items {
		node, err := n.Kube.CoreV1().Nodes().Get(run.Context(t), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		zones[node.Labels[corev1.LabelTopologyZone]] = true
		if pod.Spec.HostNetwork || pod.Spec.PriorityClassName != "system-cluster-critical" ||
			pod.Spec.ServiceAccountName != name {
			t.Errorf("pod %s: host network %t, priority class %s, account %s", pod.Name, pod.Spec.HostNetwork,
				pod.Spec.PriorityClassName, pod.Spec.ServiceAccountName)
		}
	}
	if !zones["zone-1"] || !zones["zone-2"] {
		t.Errorf("two replicas in zones %s", strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
	}
	if budget := n.Kubectl(t, "get", "poddisruptionbudget", "-n", "kube-system", name, "-o",
		"jsonpath={.spec.minAvailable}"); budget != "1" {
		t.Errorf("the budget keeps %q pods", budget)
	}
}
