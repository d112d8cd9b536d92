package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// A chart does not contain the credentials of a node: compared with the plan of this node, every
// Helm release would differ.
func TestDiffOfAHelmReleaseComparesWithItsChart(t *testing.T) {
	plan, err := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials(),
		Image: "localhost/my-scheduler:v1", Now: now}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	own := names(plan.Objects)
	if plan.Scheduler.Credentials.Mode != CredentialsNode || !strings.Contains(own, "Secret/") {
		t.Fatalf("credentials %s: %s", plan.Scheduler.Credentials.Mode, own)
	}
	chart, _, err := chartPlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{byHelm: append(slices.Clone(chart.Objects), object("ConfigMap", "my-scheduler-config-old"),
		object("ClusterRole", "my-scheduler-plugins"))}
	d := deps(r)
	var notes []string
	d.Note = func(text string) { notes = append(notes, text) }
	changes, err := Diff(t.Context(), d, plan)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"plan helm " + names(chart.Objects)}
	if diff := cmp.Diff(want, r.calls); diff != "" || strings.Contains(want[0], "Secret/") {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(apply.ChangeSet{{Object: "ClusterRole/kube-system/my-scheduler-plugins", Action: apply.Deleted}},
		changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "Helm installed scheduler my-scheduler") {
		t.Errorf("notes %q", notes)
	}
	if names(plan.Objects) != own {
		t.Errorf("the plan has changed: %s", names(plan.Objects))
	}
}

func TestDiffOfARevisionWithoutARequestWithAHelmReleaseFails(t *testing.T) {
	revision := revision(t, 1, "v1.24.3", func(o *PlanInput) { o.Spec.Credentials = CredentialsNode })
	plan, err := PlanOf(revision)
	if err != nil {
		t.Fatal(err)
	}
	plan.Request = nil
	if _, err := Diff(t.Context(), deps(&recorder{byHelm: plan.Objects}), plan); !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "does not record its request") {
		t.Errorf("got %v", err)
	}
}

// deploy does not replace a scheduler that Helm installed: its dry run fails where deploy would.
func TestDryRunIsThatOfDeployAlsoForAHelmRelease(t *testing.T) {
	plan := testPlan(t)
	r := &recorder{byHelm: slices.Clone(plan.Objects)}
	if _, err := DryRun(t.Context(), deps(r), plan); err != nil {
		t.Fatal(err)
	}
	if last := r.calls[len(r.calls)-1]; last != "plan "+names(plan.Objects) {
		t.Errorf("calls %q", r.calls)
	}
}
