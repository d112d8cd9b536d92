package kubelet

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The numbers are those of the controller of 1.24.3 for the same pods.
func TestBudgetsFollowTheirPods(t *testing.T) {
	least := func(value string) policyv1.PodDisruptionBudgetSpec {
		v := intstr.Parse(value)
		return policyv1.PodDisruptionBudgetSpec{MinAvailable: &v}
	}
	most := func(value string) policyv1.PodDisruptionBudgetSpec {
		v := intstr.Parse(value)
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
	}
	cases := map[string]struct {
		rule            policyv1.PodDisruptionBudgetSpec
		bound, healthy  int
		expected, after int
		want            Health
	}{
		"nothing changes":             {most("1"), 3, 3, 3, 3, Health{1, 3, 2, 3}},
		"one is evicted":              {most("1"), 3, 3, 3, 2, Health{0, 2, 2, 3}},
		"two are evicted":             {most("1"), 3, 3, 3, 1, Health{0, 1, 2, 3}},
		"of a percentage, rounded up": {least("50%"), 5, 5, 5, 4, Health{1, 4, 3, 5}},
		"one was not ready":           {least("2"), 4, 3, 4, 3, Health{0, 2, 2, 4}},
		"pods wait for nodes":         {most("1"), 2, 2, 4, 2, Health{0, 2, 3, 4}},
		"they get nodes":              {most("1"), 2, 2, 4, 4, Health{1, 4, 3, 4}},
		"pods are added":              {most("50%"), 2, 2, 2, 4, Health{2, 4, 2, 4}},
		"without a controller":        {most("1"), 2, 2, 0, 2, Health{0, 2, 0, 0}},
		"without a rule":              {policyv1.PodDisruptionBudgetSpec{}, 2, 2, 2, 2, Health{1, 2, 1, 2}},
		"all are gone":                {least("1"), 1, 0, 1, 0, Health{0, 0, 1, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := Budget{Rule: tc.rule, Bound: tc.bound, Health: NewHealth(&tc.rule, tc.healthy, tc.expected)}
			if got := b.after(tc.after); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The disruption controller rounds percentages up (GetScaledValueFromIntOrPercent with roundUp in
// pkg/controller/disruption/disruption.go).
func TestPercentagesOfABudgetAreRoundedUp(t *testing.T) {
	for name, c := range map[string]struct {
		rule           policyv1.PodDisruptionBudgetSpec
		expected, want int
	}{
		"minAvailable, half of 3":   {policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%"))}, 3, 2},
		"minAvailable, all of 3":    {policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, 3, 3},
		"maxUnavailable, half of 3": {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("50%"))}, 3, 1},
		"maxUnavailable, 4 of 3":    {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(4))}, 3, 0},
		"without a rule":            {policyv1.PodDisruptionBudgetSpec{}, 3, 1},
	} {
		if got := Desired(&c.rule, c.expected); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
