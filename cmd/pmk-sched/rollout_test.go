package main

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/rollout"
)

func TestTheExitStatusIsTheVerdictOfARollout(t *testing.T) {
	for verdict, want := range map[string]int{v1alpha1.RolloutPassed: 0, v1alpha1.RolloutViolated: 3,
		v1alpha1.RolloutNotJudged: 3} {
		err := verdictOf(&rollout.Result{Name: "s", Verdict: verdict, Reason: "a reason"})
		if got := command.ExitStatus(err); got != want {
			t.Errorf("%s: exit status %d, want %d", verdict, got, want)
		}
		if err != nil && !strings.Contains(err.Error(), "a reason; the share of its route is 0 %") {
			t.Errorf("%s: %v", verdict, err)
		}
	}
}

func TestStatusHasTheStepOfARollout(t *testing.T) {
	running := &health.Route{Share: 10, Bound: 3,
		Rollout: &health.Rollout{Step: 2, Steps: 4, Gates: []string{"unschedulable<=0", "wait-p99<=5s"}}}
	if got, want := routeText(running), "3 pods routed: 3 bound, 0 waiting, a share of 10 %"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := rolloutText(running), "step 2 of 4, gates unschedulable<=0, wait-p99<=5s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	running.Rollout.Verdict, running.Rollout.Reason = v1alpha1.RolloutViolated, "gate unschedulable<=0: 1 of 1 routed pod"
	if got, want := rolloutText(running), "Violated: gate unschedulable<=0: 1 of 1 routed pod"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
