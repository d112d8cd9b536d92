package deploy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// The control-plane nodes of a cluster may have taints of their distribution and of their owner. A
// condition of a node is not a taint to tolerate for good.
func TestPlanToleratesTheTaintsOfControlPlaneNodes(t *testing.T) {
	info := masterInfo("v1.29.3+rke2r1")
	info.ControlPlane.Nodes = []inspect.ControlPlaneNode{
		{Name: "a", Ready: true, Taints: []inspect.Taint{
			{Key: "node-role.kubernetes.io/etcd", Value: "true", Effect: "NoExecute"},
			{Key: "dedicated", Value: "platform", Effect: "NoSchedule"},
			{Key: "example.com/spare", Effect: "PreferNoSchedule"},
		}},
		{Name: "b", Taints: []inspect.Taint{
			{Key: "dedicated", Value: "platform", Effect: "NoSchedule"},
			{Key: "example.com/quarantine", Effect: "NoExecute"},
			{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"},
			{Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: "NoSchedule"},
		}},
	}
	o := PlanInput{Name: "gpu", Facts: Facts{Cluster: info, Image: "registry.example/gpu:v1", Now: now}}
	o.Spec.Tolerations = []v1alpha1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, toleration := range plan.Scheduler.Tolerations {
		keys = append(keys, toleration.Key)
	}
	want := []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane",
		"CriticalAddonsOnly", "dedicated", "example.com/quarantine", "node-role.kubernetes.io/etcd", "gpu"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("tolerated keys (-want +got):\n%s", diff)
	}
	for _, want := range []string{"tolerates the taint dedicated=platform:NoSchedule of control-plane node a",
		"tolerates the taint example.com/quarantine:NoExecute of control-plane node b"} {
		if !slices.Contains(plan.Notes, want) {
			t.Errorf("notes lack %q: %q", want, plan.Notes)
		}
	}
}
