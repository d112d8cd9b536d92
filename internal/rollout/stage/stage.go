// Package stage decides what follows a step of a rollout, from what was observed in the step. It
// does no I/O, and has no state: a rollout that was killed continues with the same decisions.
package stage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// Pod is a pod that was routed in a step, or that was routed before and got a node in the step or
// waits still.
type Pod struct {
	// Name is namespace/name.
	Name string
	// Wait is the time from creation to binding or, of a pod that waits, its age.
	Wait time.Duration
	// Bound is set if the pod got a node.
	Bound bool
	// Unschedulable is set if the scheduler has found no node for it at least once.
	Unschedulable bool
}

// Observation is what was seen in a step until now.
type Observation struct {
	// Elapsed is the time since the step began.
	Elapsed time.Duration
	Pods    []Pod
	// Lost is the reason why the route does not act, or empty.
	Lost string
}

// Shadow is what a shadow has decided.
type Shadow struct {
	// Same is the number of decisions that equal the cluster's, and All of all decisions.
	Same, All int
	// Different are some of the pods that the shadow treats differently, as namespace/name.
	Different []string
}

// Decision is what follows.
type Decision struct {
	// Share of the route from now on.
	Share int
	// Verdict is set if the rollout ends.
	Verdict string
	// Reason explains the decision.
	Reason string
}

// First returns the first share of a rollout.
func First(r v1alpha1.Rollout) int { return r.StepsOrDefault()[0] }

// JudgeShadow decides whether the first step may begin.
func JudgeShadow(r v1alpha1.Rollout, s Shadow) Decision {
	gate, found := r.Gate(v1alpha1.GateAgreement)
	if !found {
		return Decision{Share: First(r)}
	}
	if s.All == 0 || s.All < r.MinPodsOrDefault() {
		return ended(v1alpha1.RolloutNotJudged, "the shadow has decided about %s in %s, and %d are needed",
			plural.Count(s.All, "pod"), r.ShadowTimeOrDefault(), max(1, r.MinPodsOrDefault()))
	}
	percent := 100 * float64(s.Same) / float64(s.All)
	if percent < gate.Limit {
		return ended(v1alpha1.RolloutViolated, "gate %s: %s %% of %s%s", gate, floor(percent),
			plural.Count(s.All, "decision"), some(s.Different))
	}
	return Decision{Share: First(r), Reason: fmt.Sprintf("gate %s: %s %% of %s", gate, floor(percent),
		plural.Count(s.All, "decision"))}
}

// Next decides whether a step with a share goes on, is followed by the next step, or ends the
// rollout. A violated gate ends it at once.
func Next(r v1alpha1.Rollout, share int, o Observation) Decision {
	for _, gate := range r.GatesOrDefault() {
		if violation := violates(gate, r, o.Pods); violation != "" {
			return ended(v1alpha1.RolloutViolated, "gate %s: %s", gate, violation)
		}
	}
	judged := bound(o.Pods)
	enough := judged > 0 && judged >= r.MinPodsOrDefault()
	switch {
	case o.Lost != "":
		return ended(v1alpha1.RolloutViolated, "%s", o.Lost)
	case o.Elapsed < r.StepTimeOrDefault():
		return Decision{Share: share}
	case enough:
		return following(r, share, Summary(r, o))
	case o.Elapsed >= r.StepLimitOrDefault():
		return ended(v1alpha1.RolloutNotJudged, "%s got a node in %s at a share of %d %%, and %d are needed",
			plural.Count(judged, "routed pod"), r.StepLimitOrDefault(), share, max(1, r.MinPodsOrDefault()))
	default:
		return Decision{Share: share}
	}
}

// Summary describes what the gates of a step have measured.
func Summary(r v1alpha1.Rollout, o Observation) string {
	parts := []string{plural.Count(len(o.Pods), "routed pod")}
	for _, gate := range r.GatesOrDefault() {
		switch gate.Metric {
		case v1alpha1.GateUnschedulable:
			parts = append(parts, fmt.Sprintf("unschedulable %d", len(unschedulable(r, o.Pods))))
		case v1alpha1.GateWait:
			if len(o.Pods) > 0 {
				parts = append(parts, "wait-p99 "+duration(percentile(o.Pods)))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// following returns the first step with a larger share, or the end.
func following(r v1alpha1.Rollout, share int, summary string) Decision {
	for _, next := range r.StepsOrDefault() {
		if next > share {
			return Decision{Share: next, Reason: summary}
		}
	}
	return Decision{Share: share, Verdict: v1alpha1.RolloutPassed, Reason: summary}
}

// ended returns the end of a rollout after which no pod is routed.
func ended(verdict, format string, args ...any) Decision {
	return Decision{Verdict: verdict, Reason: fmt.Sprintf(format, args...)}
}

// violates returns how pods violate a gate of steps, or "".
func violates(gate v1alpha1.Gate, r v1alpha1.Rollout, pods []Pod) string {
	switch gate.Metric {
	case v1alpha1.GateUnschedulable:
		if found := unschedulable(r, pods); float64(len(found)) > gate.Limit {
			return fmt.Sprintf("%d of %s%s", len(found), plural.Count(len(pods), "routed pod"), some(names(found)))
		}
	case v1alpha1.GateWait:
		if len(pods) == 0 {
			return ""
		}
		if wait := percentile(pods); wait.Seconds() > gate.Limit {
			slow := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Wait.Seconds() <= gate.Limit })
			return fmt.Sprintf("%s of %s%s", duration(wait), plural.Count(len(pods), "routed pod"), some(names(slow)))
		}
	}
	return ""
}

// unschedulable returns the pods for which the scheduler found no node, or that wait for too long.
func unschedulable(r v1alpha1.Rollout, pods []Pod) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool {
		return !p.Unschedulable && (p.Bound || p.Wait <= r.SettleTimeOrDefault())
	})
}

// percentile returns the 99th percentile of the waits: of less than 100 pods the longest one.
func percentile(pods []Pod) time.Duration {
	var waits []time.Duration
	for _, p := range pods {
		waits = append(waits, p.Wait)
	}
	slices.Sort(waits)
	return waits[int(math.Ceil(0.99*float64(len(waits))))-1]
}

func bound(pods []Pod) (n int) {
	for _, p := range pods {
		if p.Bound {
			n++
		}
	}
	return n
}

// names returns the names of pods, the longest wait first.
func names(pods []Pod) (list []string) {
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(a.Name, b.Name)) })
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// maxNamed is the number of pods that a reason names.
const maxNamed = 5

// some returns the first names in parentheses, or "".
func some(list []string) string {
	switch {
	case len(list) == 0:
		return ""
	case len(list) > maxNamed:
		list = append(slices.Clone(list[:maxNamed]), "…")
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// floor returns a percentage that is never rounded up to a limit.
func floor(percent float64) string { return fmt.Sprintf("%.1f", math.Floor(percent*10)/10) }

func duration(d time.Duration) string { return d.Round(time.Millisecond).String() }
