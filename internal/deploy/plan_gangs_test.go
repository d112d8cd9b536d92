package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestPlanSaysWhatPlacesGangs(t *testing.T) {
	const gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
	plugin := []profiles.Plugin{{Name: "Coscheduling", Points: []string{"preFilter", "postFilter", "reserve", "permit"},
		Signs: true}}
	served := &inspect.Gangs{API: "scheduling.k8s.io/v1alpha2", Gates: []string{"GenericWorkload", "GangScheduling"},
		Served: true}
	absent := &inspect.Gangs{API: "scheduling.k8s.io/v1alpha2", Gates: served.Gates}
	for name, tt := range map[string]struct {
		branch     string
		plugins    []profiles.Plugin
		args       []string
		gangs      *inspect.Gangs
		note, warn string
	}{
		"neither":                {"v1.36.3", nil, nil, served, "", ""},
		"plugin, nothing served": {"v1.36.3", plugin, nil, absent, "", ""},
		"plugin, served": {"v1.36.3", plugin, nil, served,
			"a scheduler with --feature-gates=GenericWorkload=true,GangScheduling=true places them itself, without plugin " +
				"Coscheduling", ""},
		"both": {"v1.36.3", plugin, []string{gates}, served, "a pod must be in one of them only",
			""},
		"gates, nothing served": {"v1.36.3", nil, []string{gates}, absent, "",
			"--runtime-config=scheduling.k8s.io/v1alpha2=true"},
		"one gate, nothing served":      {"v1.36.3", nil, []string{"--feature-gates=GenericWorkload=true"}, absent, "", ""},
		"an API server of 1.36, unlike": {"v1.35.4", plugin, nil, served, "", ""},
		"before 1.35":                   {"v1.34.2", plugin, nil, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := versions.Parse(tt.branch)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := profiles.Render(profiles.Request{Release: release, SchedulerName: "s",
				LeaseNamespace: "kube-system", Kubeconfig: "/k", Enable: tt.plugins})
			if err != nil {
				t.Fatal(err)
			}
			p := &planner{Facts: Facts{Cluster: &inspect.Info{Gangs: tt.gangs}}, plan: &Plan{Release: release}}
			p.plan.Scheduler = manifest.Scheduler{Configuration: rendered}
			p.plan.Scheduler.Args = tt.args
			if err := p.noteGangs(); err != nil {
				t.Fatal(err)
			}
			for _, got := range []struct {
				kind, want string
				list       []string
			}{{"note", tt.note, p.plan.Notes}, {"warning", tt.warn, p.plan.Warnings}} {
				if got.want == "" && len(got.list) > 0 || got.want != "" &&
					!slices.ContainsFunc(got.list, func(s string) bool { return strings.Contains(s, got.want) }) {
					t.Errorf("%ss %q, want %q", got.kind, got.list, got.want)
				}
			}
		})
	}
}

func TestPlanDoesNotNoteBatchingIfTheGateIsOff(t *testing.T) {
	for args, want := range map[string]bool{"--v=3": true, "--feature-gates=OpportunisticBatching=false": false} {
		o := PlanInput{Name: "s", Facts: Facts{Branch: "v1.37.1", Image: "localhost/s:v1"}}
		o.Spec.Credentials, o.Spec.Args = CredentialsServiceAccount, []string{args}
		plan, err := o.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(plan.Notes,
			func(n string) bool { return strings.Contains(n, "are not batched") }); got != want {
			t.Errorf("%s: notes %q", args, plan.Notes)
		}
	}
}
