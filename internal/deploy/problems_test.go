package deploy

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

func TestCheckWarnsOfKnownProblemsThatTheConfigurationMeets(t *testing.T) {
	ignorable := true
	gpu := v1alpha1.Extender{Name: "gpu", URLPrefix: "http://gpu", FilterVerb: "filter", Ignorable: &ignorable}
	const policy = "apiVersion: v1\nkind: Policy\nextenders:\n- {urlPrefix: 'http://gpu', filterVerb: filter, nodeCacheCapable: true, " +
		"ignorable: true, httpTimeout: 1000000000}\n"
	for _, tt := range []struct {
		name   string
		branch string
		spec   v1alpha1.CustomSchedulerSpec
		meets  []string // of each warning
		misses []string
	}{
		{
			"without extenders", "v1.24.3", v1alpha1.CustomSchedulerSpec{},
			[]string{"if pods are preempted, kube-scheduler leaks memory (kubernetes#111803; fixed in v1.24.4)"},
			[]string{"kubernetes#122022"},
		},
		{
			"with an extender", "v1.24.3", v1alpha1.CustomSchedulerSpec{Extenders: []v1alpha1.Extender{gpu}},
			[]string{"a pod that an extender refused is tried again minutes late (kubernetes#122022; fixed in v1.26.12)"}, nil,
		},
		{
			"an extender of a Policy", "v1.21.3", v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{
				PolicyConfigMap: true, Inline: policy, File: "policy.yaml"}},
			[]string{"extenders are not asked when pods are preempted", "fixed in v1.21.4"}, nil,
		},
		{
			"asynchronous API calls", "v1.34.1", v1alpha1.CustomSchedulerSpec{},
			[]string{"kubernetes#134400; fixed in v1.34.2"}, []string{"kubernetes#141781"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Credentials = CredentialsServiceAccount
			plan, err := PlanInput{Name: "s", Spec: tt.spec, Facts: Facts{Image: "localhost/s:v1", Branch: tt.branch}}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			outcomes, err := knownProblems(plan)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, o := range outcomes {
				if o.Status != preflight.Warned || o.Name != "known-problem" || o.Description == "" {
					t.Errorf("outcome %+v", o)
				}
				all.WriteString(o.Detail + "\n")
			}
			for _, text := range tt.meets {
				if !strings.Contains(all.String(), text) {
					t.Errorf("no warning %q:\n%s", text, all.String())
				}
			}
			for _, text := range tt.misses {
				if strings.Contains(all.String(), text) {
					t.Errorf("warning %q:\n%s", text, all.String())
				}
			}
		})
	}
}

func TestCheckPassesWithoutKnownProblems(t *testing.T) {
	plan, err := PlanInput{Name: "s", Facts: Facts{Branch: "v1.32.13", Image: "localhost/s:v1"},
		Spec: v1alpha1.CustomSchedulerSpec{Credentials: CredentialsServiceAccount}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := knownProblems(plan)
	if err != nil || len(outcomes) != 1 || outcomes[0].Status != preflight.Passed ||
		outcomes[0].Description != "no known problem of v1.32.13 affects the configuration" {
		t.Errorf("outcomes %+v, %v", outcomes, err)
	}
}
