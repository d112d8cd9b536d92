package simulate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// A status of the snapshot counts. Without one, the replicas of the controllers count if the rule
// needs them, as in the controller of budgets: three of a Deployment, of which two have nodes.
func TestBudgetsOfASnapshot(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop","labels":{"app":"web"},` +
		`"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"u","controller":true}]},"spec":{"nodeName":"n"}}`
	const waiting = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"w","namespace":"shop","labels":{"app":"web"}}}`
	const ended = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"e","namespace":"shop","labels":{"app":"web"}},` +
		`"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`
	budget := func(name, rule, status string) string {
		return `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"` + name + `","namespace":"shop"},` +
			`"spec":{"selector":{"matchLabels":{"app":"web"}},` + rule + `},"status":` + status + `}`
	}
	b := budgets{namespaces: map[string]bool{"shop": true}, replicas: map[string]int{}, owners: map[string]string{}}
	for _, text := range []string{
		pod, pod, waiting, ended,
		budget("a", `"maxUnavailable":1`, `null`), budget("b", `"minAvailable":1`, `null`),
		budget("c", `"minAvailable":"50%"`, `{}`),
		budget("d", `"maxUnavailable":1`, `{"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":2}`),
		budget("e", `"maxUnavailable":1`, `{"disruptionsAllowed":2}`),
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":3}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"shop","ownerReferences":[{"kind":"Deployment","name":"web","uid":"u","controller":true}]},"spec":{"replicas":2}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"other","labels":{"app":"web"}},"spec":{"nodeName":"n"}}`,
	} {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		kind, version := snapshot.FindOf(snapshot.Kinds(), o)
		if err := b.add(kind, version, o); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]kubelet.Health{}
	for _, budget := range b.list() {
		got[budget.Name] = budget.Health
		if budget.Bound != 2 || budget.Stored != (budget.Name == "d") {
			t.Errorf("budget %+v", budget)
		}
	}
	want := map[string]kubelet.Health{
		"a": {Allowed: 0, Healthy: 2, Desired: 2, Expected: 3}, "b": {Allowed: 1, Healthy: 2, Desired: 1, Expected: 3},
		"c": {Allowed: 0, Healthy: 2, Desired: 2, Expected: 3}, "d": {Allowed: 0, Healthy: 1, Desired: 1, Expected: 2},
		"e": {Allowed: 2, Healthy: 2, Desired: 0, Expected: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
