package deploy

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// RKE2 and k3s can taint their servers with more than the usual; taints of the user are not
// tolerated.
func TestPlanToleratesTaintsOfDistribution(t *testing.T) {
	info := masterInfo("v1.29.3+rke2r1")
	info.ControlPlane.Nodes = []inspect.ControlPlaneNode{{Name: "a", Ready: true, Taints: []inspect.Taint{
		{Key: "node-role.kubernetes.io/etcd", Value: "true", Effect: "NoExecute"}, {Key: "dedicated", Effect: "NoSchedule"},
	}}}
	plan, err := NewPlan(info, nil, Options{Name: "gpu", Image: "registry.example/gpu:v1", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	has := func(key string) bool {
		return slices.ContainsFunc(plan.Scheduler.Tolerations, func(t corev1.Toleration) bool { return t.Key == key })
	}
	if !has("node-role.kubernetes.io/etcd") || !has("node-role.kubernetes.io/control-plane") || has("dedicated") {
		t.Errorf("got %+v", plan.Scheduler.Tolerations)
	}
}
