package scenario_test

import (
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// added returns the scenario of a manifest.
func added(t *testing.T, manifest string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Add(manifests(t, manifest), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Only the pods of an indexed Job are numbered from 0.
func TestNamesOfTheFirstPods(t *testing.T) {
	const template = "template: {spec: {containers: [{name: c}]}}"
	cases := map[string]struct {
		manifest string
		want     []string
	}{
		"of a Job": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: 2, completions: 2, " +
			template + "}\n", []string{"a-1", "a-2"}},
		"of an indexed Job": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: 2, completions: 2, " +
			"completionMode: Indexed, " + template + "}\n", []string{"a-0", "a-1"}},
		"of a StatefulSet": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 2, " +
			template + "}\n", []string{"a-0", "a-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := added(t, tc.manifest).Workloads[0]
			replicas, _ := w.Copy(0, func(string) bool { return false }, scenario.ClaimTemplates{})
			var names []string
			for _, r := range replicas {
				_, pod := r.Name()
				names = append(names, pod)
			}
			if !slices.Equal(names, tc.want) {
				t.Errorf("got %q, want %q", names, tc.want)
			}
		})
	}
}

// A ReplicaSet has the replicas of its Deployment if that has some.
func TestReplicaSetOfADeploymentWithoutReplicas(t *testing.T) {
	s := added(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n"+
		"  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}\n")
	for _, o := range s.Objects {
		spec, _ := o.Fields["spec"].(map[string]any)
		if _, ok := spec["replicas"]; ok && o.Kind.Name == "ReplicaSet" {
			t.Errorf("the ReplicaSet has replicas: %v", spec)
		}
	}
	if len(s.Objects) == 0 {
		t.Error("no ReplicaSet")
	}
}

// An ephemeral volume has a claim, whatever volumes come before it.
func TestClaimsOfEphemeralVolumes(t *testing.T) {
	w := added(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c}]\n  volumes:\n"+
		"  - {name: other, persistentVolumeClaim: {claimName: b}}\n  - name: data\n    ephemeral: {volumeClaimTemplate: {spec: "+
		"{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}\n").Workloads[0]
	replicas, _ := w.Copy(0, func(string) bool { return false }, scenario.ClaimTemplates{})
	if owned := replicas[0].Owned; len(owned) != 1 || owned[0].Kind.Name != "PersistentVolumeClaim" {
		t.Errorf("got %+v", owned)
	}
}
