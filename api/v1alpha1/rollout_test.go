package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func TestGatesOfRollouts(t *testing.T) {
	for text, want := range map[string]float64{"agreement>=99": 99, "agreement>=99.5%": 99.5, "unschedulable<=0": 0,
		"unschedulable<=12": 12, "wait-p99<=5s": 5, "wait-p99<=250ms": 0.25} {
		g, err := v1alpha1.ParseGate(text)
		if err != nil || g.Limit != want || g.String() != text {
			t.Errorf("%s: %+v, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "agreement", "agreement<=99", "agreement>=101", "agreement>=NaN", "agreement>=-1",
		"unschedulable>=1", "unschedulable<=-1", "unschedulable<=x", "unschedulable<=1.5", "wait-p99<=5", "wait-p99<=-1s",
		"wait-p99<=0s", "wait-p50<=1s", "a<=b<=c", ">=", "<=1"} {
		if g, err := v1alpha1.ParseGate(text); err == nil || !strings.HasPrefix(err.Error(), "invalid gate") {
			t.Errorf("%q: %+v, %v", text, g, err)
		}
	}
}

func TestInvalidRolloutsAreRefused(t *testing.T) {
	const route = "  route: {namespaces: [a]}\n"
	for text, want := range map[string]string{
		"{}": "",
		"{steps: [1, 100], gates: [wait-p99<=1s]}":      "",
		"{steps: [0, 100]}":                             "steps[0]: invalid share 0",
		"{steps: [10, 10]}":                             "steps[1]: invalid share 10",
		"{steps: [10, 5]}":                              "steps[1]: invalid share 5",
		"{steps: [101]}":                                "steps[0]: invalid share 101",
		"{gates: [x]}":                                  "gates[0]: invalid gate",
		"{gates: [unschedulable<=0, unschedulable<=1]}": "gates[1]: unschedulable has more than one gate",
		"{gates: [agreement>=99]}":                      "no gate for the steps",
		"{minPods: -1}":                                 "minPods: invalid value -1",
		"{steps: [" + strings.Repeat("1,", 21) + "]}":   "more than 20 steps",
	} {
		s, err := v1alpha1.Decode([]byte("apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nspec:\n" + route +
			"  rollout: " + text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "spec.rollout: ") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	s := &v1alpha1.CustomScheduler{Spec: v1alpha1.CustomSchedulerSpec{Rollout: &v1alpha1.Rollout{}}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "spec.route is missing") {
		t.Errorf("without a route: %v", err)
	}
}

func TestPositionOfAShare(t *testing.T) {
	for share, want := range map[int]int{0: 1, 1: 1, 5: 1, 10: 2, 50: 3, 70: 3, 100: 4} {
		if step, steps := new(v1alpha1.Rollout).Position(share); step != want || steps != 4 {
			t.Errorf("share %d: step %d of %d, want %d of 4", share, step, steps, want)
		}
	}
}
