package policytest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Outcome is the expected and the actual result for an expectation.
type Outcome struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Met      bool   `json:"met"`
	// Failures are the pods and nodes because of which the expectation is not met.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is a pod or a node that does not meet an expectation.
type Failure struct {
	// Pod is a pod's namespace and name.
	Pod  string `json:"pod,omitempty"`
	Node string `json:"node,omitempty"`
	// Got describes its state, with the scheduler's reason.
	Got string `json:"got"`
}

// String returns the failure in one line.
func (f Failure) String() string {
	subject := f.Pod
	if subject == "" {
		subject = "node " + f.Node
	}
	return subject + ": " + f.Got
}

// check compares a simulation's result with an expectation, except for sameAs: see [Same].
func check(e *v1alpha1.Expectation, r *report.Report) Outcome {
	o := Outcome{Name: describe(e), Expected: expected(e)}
	switch {
	case e.Copies != nil:
		o.checkCopies(e.Copies.Limits, r.Capacity)
	case e.EmptyNodes != nil:
		o.checkEmptyNodes(e.EmptyNodes, r)
	case e.Utilization != nil:
		o.checkUtilization(e.Utilization, r)
	case e.Spread != nil:
		o.checkSpread(e, r)
	case e.Requests != nil:
		o.checkRequests(e, r)
	default:
		o.checkPods(e, podsOf(r))
	}
	return o
}

// checkPods compares each of the pods. Without a count, all have to meet the expectation.
func (o *Outcome) checkPods(e *v1alpha1.Expectation, all []pod) {
	var meet, miss []Failure
	var first []string
	for i := range all {
		p := &all[i]
		if !p.matches(e) {
			continue
		}
		got, ok := p.meets(e)
		f := Failure{Pod: p.key, Node: p.node(), Got: got}
		first = append(first, got)
		if ok {
			meet = append(meet, f)
		} else {
			miss = append(miss, f)
		}
	}
	if e.Evicts != "" {
		meet = append(meet, unknownPreemptors(e, all)...)
	}
	total := len(meet) + len(miss)
	switch {
	case e.Count == nil:
		o.Met, o.Failures = total > 0 && len(miss) == 0, miss
	case exceeds(e.Count.Limits, float64(len(meet))):
		o.Failures = meet
	default:
		if o.Met = within(e.Count.Limits, float64(len(meet))); !o.Met {
			o.Failures = miss
		}
	}
	switch {
	case total == 0 && e.Count == nil:
		o.Got = "no such pod"
	case total == 1 && len(first) == 1:
		o.Got = first[0]
	default:
		o.Got = fmt.Sprintf("%d of %s", len(meet), plural.Count(total, "pod"))
	}
}

// unknownPreemptors returns evicted pods whose preemptor is not known: each of the pods may be it.
func unknownPreemptors(e *v1alpha1.Expectation, all []pod) []Failure {
	var found []Failure
	for i := range all {
		if p := &all[i]; p.evicted && p.by == "" && matchName(e.Evicts, p.key) {
			found = append(found, Failure{Pod: p.key, Node: p.from, Got: "evicted by a pod that the scheduler did not report"})
		}
	}
	return found
}

// same compares the results from several runs by a scheduler with runs by a second one. A pod
// differs if no run by one scheduler has the same result as a run by the second: everything else is
// a tie, or follows from one.
func same(e *v1alpha1.Expectation, own, other []*report.Report) Outcome {
	o := Outcome{Name: describe(e), Expected: expected(e)}
	ours, theirs := states(e, own), states(e, other)
	same := 0
	for _, key := range sortedKeys(ours, theirs) {
		a, b := ours[key], theirs[key]
		if slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) }) {
			same++
			continue
		}
		o.Failures = append(o.Failures, Failure{Pod: key,
			Got: cmp.Or(strings.Join(a, " or "), "missing") + ", not " + cmp.Or(strings.Join(b, " or "), "there")})
	}
	o.Met = len(o.Failures) == 0
	o.Got = fmt.Sprintf("%d of %s", len(o.Failures), plural.Phrase(same+len(o.Failures), "pod differs", "pods differ"))
	return o
}

// states returns each pod's different results in several runs, without the reasons for pending
// pods.
func states(e *v1alpha1.Expectation, runs []*report.Report) map[string][]string {
	found := map[string][]string{}
	for _, r := range runs {
		all := podsOf(r)
		for i := range all {
			p := &all[i]
			if e.SelectsPods() && !p.matches(e) {
				continue
			}
			state := "on node " + p.node()
			switch {
			case p.evicted:
				state = "evicted"
			case p.on == nil:
				state = pending
			}
			if !slices.Contains(found[p.key], state) {
				found[p.key] = append(found[p.key], state)
			}
		}
	}
	return found
}

func sortedKeys(maps ...map[string][]string) []string {
	var keys []string
	for _, m := range maps {
		for key := range m {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
