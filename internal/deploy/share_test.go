package deploy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// routedRevision is a deployed revision with a route.
func routedRevision(t *testing.T) *apply.Revision {
	t.Helper()
	info := masterInfo("v1.24.3")
	info.Routing = &inspect.Routing{WebhookNamespace: "w"}
	plan, err := routedPlan(Facts{Cluster: info})
	if err != nil {
		t.Fatal(err)
	}
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{RevisionInfo: apply.RevisionInfo{Number: 1, Name: plan.Name, Namespace: plan.Namespace,
		Status: apply.Deployed}, Objects: plan.Objects, Record: record}
}

func TestAShareChangesTheRegistrationOnly(t *testing.T) {
	before := routedRevision(t)
	plan, err := PlanShare(before, 10, v1alpha1.RolloutState{})
	if err != nil {
		t.Fatal(err)
	}
	routing, others := registrations(plan.Objects)
	_, former := registrations(before.Objects)
	if diff := cmp.Diff(former, others); diff != "" {
		t.Errorf("other objects (-want +got):\n%s", diff)
	}
	rule, err := route.Decode(routing[0].GetAnnotations())
	if err != nil || rule.Route.ShareOrDefault() != 10 || len(routing) != 1 {
		t.Errorf("%d registrations, rule %+v, %v", len(routing), rule, err)
	}
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	after := &apply.Revision{RevisionInfo: before.RevisionInfo, Objects: plan.Objects, Record: record}
	next, err := PlanShare(after, 10, v1alpha1.RolloutState{Verdict: v1alpha1.RolloutPassed})
	if err != nil {
		t.Fatal(err)
	}
	if !SameObjects(next.Objects, plan.Objects) || next.Request.Spec.Rollout.State.Verdict != v1alpha1.RolloutPassed ||
		next.Origin != "rollout: a share of 10 %, Passed" {
		t.Errorf("the end of a rollout: %+v, origin %q", next.Request.Spec.Rollout, next.Origin)
	}
	if before.Record, err = testPlan(t).Record(); err != nil {
		t.Fatal(err)
	}
	_, err = PlanShare(before, 10, v1alpha1.RolloutState{})
	if err == nil || !strings.Contains(err.Error(), "has no route") {
		t.Errorf("without a route: %v", err)
	}
}

func TestAShareIsSetWithoutWaitingForTheScheduler(t *testing.T) {
	const routing = "apply MutatingWebhookConfiguration/pmk-sched-route-my-scheduler"
	begin := []string{"lock", "save revision 2", routing}
	for name, tc := range map[string]struct {
		fails string
		want  []string
	}{
		"set":    {want: slices.Concat(begin, []string{"revision 2 deployed", "delete ", "prune", "unlock"})},
		"failed": {fails: routing, want: slices.Concat(begin, []string{routing, "revision 2 failed", "unlock"})},
		"not marked": {fails: "revision 2 deployed",
			want: slices.Concat(begin, []string{"revision 2 deployed", routing, "revision 2 failed", "unlock"})},
	} {
		t.Run(name, func(t *testing.T) {
			revision := routedRevision(t)
			broken := errors.New("broken")
			r := &recorder{fails: map[string]error{tc.fails: broken}, owned: revision.Objects,
				revisions: []*apply.Revision{revision}}
			plan, err := PlanShare(revision, 0, v1alpha1.RolloutState{Verdict: v1alpha1.RolloutViolated})
			if err != nil {
				t.Fatal(err)
			}
			_, err = SetShare(t.Context(), deps(r), plan)
			if (err != nil) != (tc.fails != "") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
