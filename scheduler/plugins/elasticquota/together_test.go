package elasticquota

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// A user who may create ElasticQuotas, and may not change the one of an administrator, can lower
// the limits of his namespace and not raise them, whatever the names are.
func TestElasticQuotasOfOtherNamesRaiseNoLimit(t *testing.T) {
	spec := func(min, max map[string]interface{}) map[string]interface{} {
		return map[string]interface{}{"min": min, "max": max}
	}
	limit := spec(map[string]interface{}{"cpu": "1"}, map[string]interface{}{"cpu": "2", "memory": "4Gi"})
	for name, c := range map[string]struct {
		other    map[string]interface{}
		min, max amounts
	}{
		"more of everything": {
			spec(map[string]interface{}{"cpu": "9"}, map[string]interface{}{"cpu": "9", "memory": "9Gi"}),
			amounts{"cpu": 1000, "memory": 0}, amounts{"cpu": 2000, "memory": 4 << 30}},
		"less": {
			spec(map[string]interface{}{"cpu": "500m"}, map[string]interface{}{"cpu": "1", "memory": "9Gi"}),
			amounts{"cpu": 500, "memory": 0}, amounts{"cpu": 1000, "memory": 4 << 30}},
		"another resource": {
			spec(map[string]interface{}{"example.com/gpu": 1}, map[string]interface{}{"example.com/gpu": 2}),
			amounts{"cpu": 0, "memory": 0, "example.com/gpu": 0}, amounts{"cpu": 2000, "memory": 4 << 30,
				"example.com/gpu": 2}},
	} {
		for _, other := range []string{"a", "z"} {
			t.Run(name+", named "+other, func(t *testing.T) {
				w := newWorld(t, "{}", 1)
				for name, spec := range map[string]map[string]interface{}{"limit": limit, other: c.other} {
					q, err := parse(elasticQuota("team", name, spec))
					if err != nil {
						t.Fatal(err)
					}
					w.plugin.setQuota(context.Background(), "team", name, q)
				}
				got := w.plugin.quotas.of("team")
				if diff := cmp.Diff([]amounts{c.min, c.max}, []amounts{got.min, got.max}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				w.plugin.setQuota(context.Background(), "team", other, nil)
				if got := w.plugin.quotas.of("team"); got.name != "team/limit" || got.max["cpu"] != 2000 {
					t.Errorf("without the other one: %+v", got)
				}
			})
		}
	}
}

// Each change of an ElasticQuota reads all of its namespace, and each attempt of a pod all of their
// resources. Only the namespace itself has to pay for it when somebody creates thousands.
func TestNamespaceWithTooManyElasticQuotasGetsNoMorePods(t *testing.T) {
	w := newWorld(t, "{}", 1)
	pod := w.newPod("team", "new", "1", 0)
	set := func(name string, max map[string]interface{}) {
		t.Helper()
		q, err := parse(elasticQuota("team", name, map[string]interface{}{"max": max}))
		if err != nil {
			t.Fatal(err)
		}
		w.plugin.setQuota(t.Context(), "team", name, q)
	}
	expect := func(want string) {
		t.Helper()
		_, status := w.plugin.PreFilter(t.Context(), plugintest.NewState(), pod)
		if got := fmt.Sprint(status.Reasons()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for i := range mostQuotas {
		set(fmt.Sprint("q-", i), map[string]interface{}{"cpu": "8"})
	}
	expect("[]")
	set("more", map[string]interface{}{"cpu": "8"})
	expect("[quota team/* (more than 100 ElasticQuotas): no more than 0 of pods]")
	w.plugin.setQuota(t.Context(), "team", "more", nil)
	expect("[]")
	setMany := func(name string, resources int) {
		many := map[string]interface{}{}
		for r := range resources {
			many[fmt.Sprintf("example.com/%s-%d", name, r)] = "1"
		}
		set(name, many)
	}
	setMany("q-0", mostResources/2)
	setMany("q-1", mostResources/2-1)
	expect("[]") // with cpu these are as many as a namespace may have
	setMany("q-1", mostResources/2)
	expect("[quota team/* (more than 200 resources): no more than 0 of pods]")
}

func TestElasticQuotasWithTooManyResourcesAreRefused(t *testing.T) {
	many := map[string]interface{}{}
	for i := range mostResources {
		many[fmt.Sprint("example.com/r-", i)] = "1"
	}
	if q, err := parse(elasticQuota("team", "many", map[string]interface{}{"max": many})); err != nil ||
		len(q.max) != mostResources {
		t.Errorf("as many as it may have: %v", err)
	}
	many["example.com/more"] = "1"
	if _, err := parse(elasticQuota("team", "many", map[string]interface{}{"max": many})); err == nil ||
		err.Error() != "min and max have 201 resources, more than 200" {
		t.Errorf("got %v", err)
	}
}
