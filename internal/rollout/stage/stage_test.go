package stage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

const second = time.Second

// pods returns bound pods with a wait each.
func pods(n int, wait time.Duration) (list []stage.Pod) {
	for i := range n {
		list = append(list, stage.Pod{Name: fmt.Sprintf("a/p%d", i), Wait: wait, Bound: true})
	}
	return list
}

func waiting(wait time.Duration, unschedulable bool) []stage.Pod {
	return []stage.Pod{{Name: "a/waiting", Wait: wait, Unschedulable: unschedulable}}
}

func TestStepsFollowFromWhatWasSeen(t *testing.T) {
	const early, over, late = time.Minute, 6 * time.Minute, 61 * time.Minute
	at := func(elapsed time.Duration, pods ...[]stage.Pod) stage.Observation {
		return stage.Observation{Elapsed: elapsed, Pods: slices.Concat(pods...)}
	}
	for name, tc := range map[string]struct {
		rollout         v1alpha1.Rollout
		share           int
		o               stage.Observation
		want            int
		verdict, reason string
	}{
		"too early": {share: 1, o: at(early, pods(9, second)), want: 1},
		"the next step": {share: 1, o: at(over, pods(9, second)), want: 10,
			reason: "9 routed pods, unschedulable 0, wait-p99 1s"},
		"too few pods": {share: 1, o: at(over, pods(4, second)), want: 1},
		"just enough":  {share: 10, o: at(over, pods(5, second)), want: 50},
		"the end":      {share: 100, o: at(over, pods(5, second)), want: 100, verdict: v1alpha1.RolloutPassed},
		"no pod": {share: 10, o: at(late),
			verdict: v1alpha1.RolloutNotJudged, reason: "0 routed pods got a node in 1h0m0s at a share of 10 %, and 5 are needed"},
		"still too few": {share: 10, o: at(late, pods(4, second)), verdict: v1alpha1.RolloutNotJudged},
		"one pod waits": {share: 1, o: at(early, pods(9, second), waiting(second, false)), want: 1},
		"one is rejected": {share: 1, o: at(second, pods(9, second), waiting(second, true)),
			verdict: v1alpha1.RolloutViolated, reason: "gate unschedulable<=0: 1 of 10 routed pods (a/waiting)"},
		"one was rejected, and got a node": {share: 1, o: stage.Observation{Elapsed: second, Pods: []stage.Pod{
			{Name: "a/b", Bound: true, Unschedulable: true}}}, verdict: v1alpha1.RolloutViolated,
			reason: "gate unschedulable<=0: 1 of 1 routed pod (a/b)"},
		"one waits for too long": {rollout: v1alpha1.Rollout{Gates: []string{"unschedulable<=0"}}, share: 1,
			o: at(second, waiting(31*second, false)), verdict: v1alpha1.RolloutViolated},
		"one got a node late": {rollout: v1alpha1.Rollout{Gates: []string{"unschedulable<=0"}}, share: 1,
			o: at(second, pods(1, time.Minute)), want: 1},
		"as many as allowed": {rollout: v1alpha1.Rollout{Gates: []string{"unschedulable<=1"}}, share: 1,
			o: at(over, pods(9, second), waiting(second, true)), want: 10},
		"a slow pod": {share: 1, o: at(early, pods(9, second), pods(1, 5100*time.Millisecond)),
			verdict: v1alpha1.RolloutViolated, reason: "gate wait-p99<=5s: 5.1s of 10 routed pods (a/p0)"},
		"one slow pod of 100": {share: 1, o: at(over, pods(99, second), pods(1, 6*second)), want: 10},
		"two of 100": {share: 1, o: at(over, pods(98, second), pods(2, 6*second)),
			verdict: v1alpha1.RolloutViolated},
		"a pod that waits counts with its age": {share: 1, o: at(early, waiting(6*second, false)),
			verdict: v1alpha1.RolloutViolated, reason: "gate wait-p99<=5s: 6s of 1 routed pod (a/waiting)"},
		"a violation after the time": {share: 100, o: at(late, pods(500, second), waiting(second, true)),
			verdict: v1alpha1.RolloutViolated},
		"the route is suspended": {share: 1, o: stage.Observation{Elapsed: second, Lost: "no replica leads"},
			verdict: v1alpha1.RolloutViolated, reason: "no replica leads"},
		"other steps": {rollout: v1alpha1.Rollout{Steps: []int{5, 20}}, share: 5, o: at(over, pods(5, second)), want: 20},
		"a share between two steps": {rollout: v1alpha1.Rollout{Steps: []int{5, 20}}, share: 7,
			o: at(over, pods(5, second)), want: 20},
		"an end before 100 %": {rollout: v1alpha1.Rollout{Steps: []int{5, 20}}, share: 20,
			o: at(over, pods(5, second)), want: 20, verdict: v1alpha1.RolloutPassed},
		"short steps": {rollout: v1alpha1.Rollout{StepTime: v1alpha1.Duration(second), MinPods: 1}, share: 1,
			o: at(2*second, pods(1, second)), want: 10},
		"a limit that is shorter than a step": {rollout: v1alpha1.Rollout{StepLimit: v1alpha1.Duration(second)}, share: 1,
			o: at(early), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := stage.Next(tc.rollout, tc.share, tc.o)
			if got.Share != tc.want || got.Verdict != tc.verdict || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("got %+v, want share %d, verdict %q, reason %q", got, tc.want, tc.verdict, tc.reason)
			}
		})
	}
}

func TestShadowIsJudgedBeforeTheFirstStep(t *testing.T) {
	gated := v1alpha1.Rollout{Gates: []string{"agreement>=99", "unschedulable<=0"}}
	for name, tc := range map[string]struct {
		rollout         v1alpha1.Rollout
		shadow          stage.Shadow
		want            int
		verdict, reason string
	}{
		"no gate":   {v1alpha1.Rollout{}, stage.Shadow{}, 1, "", ""},
		"agreement": {gated, stage.Shadow{Same: 99, All: 100}, 1, "", "gate agreement>=99: 99.0 % of 100 decisions"},
		"difference": {gated, stage.Shadow{Same: 989, All: 1000, Different: []string{"a/b"}}, 0, v1alpha1.RolloutViolated,
			"gate agreement>=99: 98.9 % of 1000 decisions (a/b)"},
		"no pods":  {gated, stage.Shadow{}, 0, v1alpha1.RolloutNotJudged, "decided about 0 pods in 10m0s, and 5 are needed"},
		"few pods": {gated, stage.Shadow{Same: 4, All: 4}, 0, v1alpha1.RolloutNotJudged, "4 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			got := stage.JudgeShadow(tc.rollout, tc.shadow)
			if got.Share != tc.want || got.Verdict != tc.verdict || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("got %+v, want share %d, verdict %q, reason %q", got, tc.want, tc.verdict, tc.reason)
			}
		})
	}
}

func TestReasonsNameFewPods(t *testing.T) {
	var list []stage.Pod
	for i := range 9 {
		list = append(list, stage.Pod{Name: fmt.Sprintf("a/p%d", i), Wait: time.Duration(i) * second, Unschedulable: true})
	}
	got := stage.Next(v1alpha1.Rollout{}, 1, stage.Observation{Pods: list})
	if want := "9 of 9 routed pods (a/p8, a/p7, a/p6, a/p5, a/p4, …)"; !strings.HasSuffix(got.Reason, want) {
		t.Errorf("reason %q, want %q", got.Reason, want)
	}
}
