package manifest_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// strategy returns maxSurge and maxUnavailable of a Deployment.
func strategy(t *testing.T, deployment *unstructured.Unstructured) [2]int64 {
	t.Helper()
	of := func(name string) int64 {
		return field(t, deployment, "spec", "strategy", "rollingUpdate", name).(int64)
	}
	return [2]int64{of("maxSurge"), of("maxUnavailable")}
}

// On the host network the old pod and the new pod have the same port. On the pod network the new
// pod is ready before the old pod stops.
func TestRolloutFitsTheNetwork(t *testing.T) {
	for mode, want := range map[string][2]int64{
		manifest.ModeNode: {0, 1}, manifest.ModeHostPath: {0, 1}, manifest.ModeServiceAccount: {1, 0},
	} {
		if got := strategy(t, deployment(t, scheduler(t, "v1.24.3", mode))); got != want {
			t.Errorf("%s: got %v, want %v", mode, got, want)
		}
	}
	alone := scheduler(t, "v1.24.3", manifest.ModeServiceAccount)
	alone.Configuration.LeaderElect = false
	if got, want := strategy(t, deployment(t, alone)), [2]int64{0, 1}; got != want {
		t.Errorf("without leader election: got %v, want %v", got, want)
	}
}

// A replica that has no node does not stop the rollout of the others; all of them are never stopped
// at once unless there is one.
func TestRolloutToleratesAShortageOfNodes(t *testing.T) {
	for _, tc := range []struct {
		mode            string
		replicas        int32
		shortage        int
		surge, expected int64
	}{
		{manifest.ModeNode, 3, 0, 0, 1},
		{manifest.ModeNode, 3, 1, 0, 2},
		{manifest.ModeNode, 2, 1, 0, 2},
		{manifest.ModeNode, 2, 5, 0, 2},
		{manifest.ModeServiceAccount, 3, 1, 1, 0},
	} {
		s := scheduler(t, "v1.24.3", tc.mode)
		s.Replicas, s.Shortage = tc.replicas, tc.shortage
		all := objects(t, s)
		if got, want := strategy(t, all[len(all)-1]), [2]int64{tc.surge, tc.expected}; got != want {
			t.Errorf("%+v: got %v", tc, got)
		}
		again, err := manifest.TolerateShortage(all, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strategy(t, again[len(again)-1]), [2]int64{tc.surge, 1 - tc.surge}; got != want {
			t.Errorf("%+v: got %v when the nodes are ready", tc, got)
		}
		if got, want := strategy(t, all[len(all)-1]), [2]int64{tc.surge, tc.expected}; got != want {
			t.Errorf("%+v: the objects were changed in place: %v", tc, got)
		}
	}
}

func TestBudgetKeepsOneOfSeveralReplicas(t *testing.T) {
	budget := func(release string, replicas int32) *unstructured.Unstructured {
		s := scheduler(t, release, manifest.ModeNode)
		s.Replicas = replicas
		for _, o := range objects(t, s) {
			if o.GetKind() == "PodDisruptionBudget" {
				return o
			}
		}
		return nil
	}
	if budget("v1.24.3", 1) != nil {
		t.Error("a single replica could not be evicted")
	}
	for release, version := range map[string]string{"v1.20.15": "policy/v1beta1", "v1.21.3": "policy/v1",
		"v1.36.3": "policy/v1"} {
		b := budget(release, 3)
		if b == nil || b.GetAPIVersion() != version || field(t, b, "spec", "minAvailable") != int64(1) {
			t.Fatalf("%s: got %v", release, b)
		}
		if got := field(t, b, "spec", "selector", "matchLabels", "app.kubernetes.io/instance"); got != "my-scheduler" {
			t.Errorf("%s: it selects %v", release, got)
		}
	}
}

// Replicas on any node are in different zones and on different nodes also after a rollout, which
// therefore replaces one after the other.
func TestReplicasOnAnyNodeStayApart(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeServiceAccount)
	s.NodeSelector, s.Replicas = nil, 2
	d := deployment(t, s)
	if got, want := strategy(t, d), [2]int64{0, 1}; got != want {
		t.Errorf("strategy: got %v, want %v", got, want)
	}
	var keys []any
	for _, c := range field(t, d, "spec", "template", "spec", "topologySpreadConstraints").([]any) {
		keys = append(keys, c.(map[string]any)["topologyKey"], c.(map[string]any)["whenUnsatisfiable"])
	}
	want := []any{"topology.kubernetes.io/zone", "ScheduleAnyway", "kubernetes.io/hostname", "ScheduleAnyway"}
	if !slices.Equal(keys, want) {
		t.Errorf("constraints: got %v", keys)
	}
	s.Replicas = 1
	if got, want := strategy(t, deployment(t, s)), [2]int64{1, 0}; got != want {
		t.Errorf("strategy of one: got %v, want %v", got, want)
	}
}
