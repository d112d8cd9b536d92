package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// policyInput returns the input of the plan of a scheduler with a Policy and an extender.
func policyInput(release string) PlanInput {
	no := false
	return PlanInput{
		Name: "my-scheduler", Facts: Facts{Image: "localhost/x:v1", Branch: release},
		Spec: v1alpha1.CustomSchedulerSpec{
			Credentials:   CredentialsServiceAccount,
			Configuration: v1alpha1.Configuration{Preset: "binpack", PolicyConfigMap: true},
			Extenders: []v1alpha1.Extender{{Name: "gpu", URLPrefix: "http://10.0.0.1", FilterVerb: "filter", Ignorable: &no,
				HTTPTimeout: 9e9}},
		},
	}
}

func TestPlanWithPolicy(t *testing.T) {
	plan, err := policyInput("v1.21.3").Plan()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(plan.Warnings,
		func(w string) bool { return strings.Contains(w, "extender gpu: with httpTimeout 9s") }) {
		t.Errorf("no warning: %q", plan.Warnings)
	}
	if text := plan.Scheduler.Configuration.Policy; !strings.Contains(string(text), "MostRequestedPriority") {
		t.Errorf("the Policy that is checked:\n%s", text)
	}
	if _, err := policyInput("v1.24.3").Plan(); err == nil ||
		!strings.Contains(err.Error(), "v1.24.3 does not read a Policy") {
		t.Errorf("a release without Policy: %v", err)
	}
}
