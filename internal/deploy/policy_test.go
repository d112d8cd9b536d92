package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// policyOptions are for a scheduler with a Policy and an extender.
func policyOptions(release string) Options {
	no := false
	return Options{
		Name: "my-scheduler", Image: "localhost/x:v1", Branch: release, Preset: "binpack",
		Credentials: CredentialsServiceAccount, PolicyConfigMap: true,
		Extenders: []profiles.Extender{{Name: "gpu", URLPrefix: "http://10.0.0.1", FilterVerb: "filter", Ignorable: &no,
			HTTPTimeout: 9e9}},
	}
}

func TestPlanWithPolicy(t *testing.T) {
	plan, err := NewPlan(nil, nil, policyOptions("v1.21.3"))
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
	if _, err := NewPlan(nil, nil, policyOptions("v1.24.3")); err == nil ||
		!strings.Contains(err.Error(), "v1.24.3 does not read a Policy") {
		t.Errorf("a release without Policy: %v", err)
	}
}
