//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The default plugins prefer the far node, which is larger.
func nearestNode(t *testing.T, s subject) {
	x := s.prepare(t, "network", profiles.Plugin{Name: networkaware.Name, Weight: 100, Args: []byte(networkArguments)},
		networkaware.Rules)
	client := x.define(t, "networkaware", networkmetrics)
	for name, latency := range map[string]float64{"network-near": 1.5, "network-far": 30} {
		sample := read(t, "networkaware", "sample.yaml")
		sample.SetName(name)
		if err := unstructured.SetNestedField(sample.Object, latency, "status", "latencyMilliseconds"); err != nil {
			t.Fatal(err)
		}
		create(t.Context(), t, client, sample)
	}
	x.scheduler.Start()
	x.followsNodes(t, "begin")
	x.node(t, "near", nil, map[string]string{"pair": "distance"})
	x.node(t, "far", amounts{corev1.ResourceCPU: "64", corev1.ResourceMemory: "256Gi"},
		map[string]string{"pair": "distance"})
	x.followsNodes(t, "end")
	run.Eventually(t, "the plugin knows both nodes", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, x.metrics)
		values := metrics.By(t, "pmk_sched_networkaware_nodes", "")
		return values[""] == 2, fmt.Sprint(values, err)
	})
	pod := x.pod("web", amounts{corev1.ResourceCPU: "1", corev1.ResourceMemory: "1Gi"})
	pod.Spec.NodeSelector["pair"] = "distance"
	x.create(t, pod)
	if got := x.nodeOf(t, "web"); got != "near" {
		t.Errorf("placed on %s, want near", got)
	}
}
