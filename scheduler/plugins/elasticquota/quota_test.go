package elasticquota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func amountsOf(cpu, memory string) amounts {
	return scheduler.NewAmounts(plugintest.Requests(cpu, memory))
}

// Usage can be above max: a limit that was lowered, or pods of another scheduler.
func TestOnlyWhatAPodNeedsCanExceedMax(t *testing.T) {
	q, err := newQuota("a", []string{"a"}, nil, plugintest.Requests("8", "8Gi"))
	if err != nil {
		t.Fatal(err)
	}
	beyond := func(cpu string) amounts {
		return scheduler.NewAmounts(plugintest.Requests(cpu, "0"))
	}
	for name, c := range map[string]struct{ used, need, want amounts }{
		"it fits exactly":                      {amountsOf("7", "0"), amountsOf("1", "8Gi"), amounts{}},
		"a little more":                        {amountsOf("7", "0"), amountsOf("1001m", "0"), beyond("1m")},
		"usage is above max, of what it needs": {amountsOf("9", "0"), amountsOf("1", "0"), beyond("2")},
		"usage is above max, of another":       {amountsOf("9", "0"), amountsOf("0", "1Gi"), amounts{}},
	} {
		delete(c.want, corev1.ResourceMemory)
		if diff := cmp.Diff(c.want, q.beyondMax(c.used, c.need)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPodsAreGuaranteedWhatTheyNeedOfMin(t *testing.T) {
	min := plugintest.Requests("4", "1Gi")
	q, err := newQuota("a", []string{"a"}, min, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		used, need           amounts
		concerns, guarantees bool
	}{
		"it fits exactly":                      {amountsOf("3", "0"), amountsOf("1", "1Gi"), true, true},
		"a little more":                        {amountsOf("3", "0"), amountsOf("1001m", "0"), true, false},
		"the least amount":                     {amountsOf("4", "0"), amountsOf("1m", "0"), true, false},
		"usage is above min, of what it needs": {amountsOf("5", "0"), amountsOf("1", "0"), true, false},
		"usage is above min, of another":       {amountsOf("3", "2Gi"), amountsOf("1", "0"), true, true},
		"a resource that the quota has not":    {amountsOf("0", "0"), amounts{"example.com/gpu": 1}, false, false},
		"nothing":                              {amountsOf("0", "0"), amountsOf("0", "0"), false, false},
	} {
		for range 8 { // resources have no order
			concerns, guarantees := q.concerns(c.need), q.guarantees(c.used, c.need)
			if concerns != c.concerns || guarantees != c.guarantees {
				t.Fatalf("%s: it is concerned: %t, guaranteed: %t", name, concerns, guarantees)
			}
		}
	}
}

func TestVictimsThatAreNotNeededAreLeftOut(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	for name, c := range map[string]struct {
		missing string
		pods    []string // the CPU of candidates, in the order in which they are taken
		want    []string
	}{
		"the first one alone suffices":  {"1", []string{"1", "4"}, []string{"1"}},
		"the second one suffices":       {"4", []string{"1", "4"}, []string{"4"}},
		"the first and the last one":    {"5", []string{"3", "1", "2"}, []string{"3", "2"}},
		"all of them":                   {"6", []string{"3", "1", "2"}, []string{"3", "1", "2"}},
		"the last one suffices for all": {"6", []string{"3", "2", "8"}, []string{"8"}},
	} {
		var candidates []*corev1.Pod
		for i, cpu := range c.pods {
			candidates = append(candidates, w.newPod("b", cpu, cpu, int32(i))) //nolint:gosec // a few
		}
		taken, ok := cover(amountsOf(c.missing, "0"), candidates)
		var got []string
		for _, pod := range taken {
			got = append(got, pod.Name)
		}
		if diff := cmp.Diff(c.want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
}
