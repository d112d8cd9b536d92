package policytest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// tolerance is the relative error in sums over parts of quantities.
const tolerance = 1e-9

// within reports whether a number is within limits.
func within(l v1alpha1.Limits, n float64) bool { return !exceeds(l, n) && !misses(l, n) }

// exceeds reports whether a number is too large.
func exceeds(l v1alpha1.Limits, n float64) bool {
	more := func(a *v1alpha1.Amount) bool { return a != nil && n-a.Value > tolerance*math.Max(1, a.Value) }
	return more(l.Exactly) || more(l.AtMost) || l.Below != nil && n >= l.Below.Value
}

// misses reports whether a number is too small.
func misses(l v1alpha1.Limits, n float64) bool {
	less := func(a *v1alpha1.Amount) bool { return a != nil && a.Value-n > tolerance*math.Max(1, a.Value) }
	return less(l.Exactly) || less(l.AtLeast) || l.Above != nil && n <= l.Above.Value
}

func (o *Outcome) checkCopies(l v1alpha1.Limits, c *report.Capacity) {
	n := float64(c.Copies)
	if o.Got = plural.Count(c.Copies, "copy"); !c.Limited {
		o.Met = within(l, n)
	} else {
		o.Got = "at least " + o.Got + ": none was refused" // a higher number is possible
		o.Met = !misses(l, n) && l.Exactly == nil && l.AtMost == nil && l.Below == nil
	}
	if s := c.Stop; s != nil && !o.Met {
		o.Failures = []Failure{{Pod: s.Namespace + "/" + s.Name, Got: pending + ": " + s.Reason}}
	}
}

func (o *Outcome) checkEmptyNodes(e *v1alpha1.EmptyNodes, r *report.Report) {
	type fullNode struct {
		name string
		pods []string
	}
	var full []fullNode
	var empty []Failure
	for _, n := range nodesWith(r, e.Labels) {
		node := fullNode{name: n.Name}
		for _, p := range n.Pods {
			if !p.Fixed {
				node.pods = append(node.pods, p.Namespace+"/"+p.Name)
			}
		}
		if len(node.pods) == 0 {
			empty = append(empty, Failure{Node: n.Name, Got: "empty"})
		} else {
			full = append(full, node)
		}
	}
	o.Got = plural.Count(len(empty), "node")
	o.Met = within(e.Limits, float64(len(empty)))
	switch {
	case o.Met:
	case exceeds(e.Limits, float64(len(empty))):
		o.Failures = empty
	default: // the nodes with the fewest pods are the nearest to be empty
		slices.SortStableFunc(full, func(a, b fullNode) int { return cmp.Compare(len(a.pods), len(b.pods)) })
		for _, n := range full {
			o.Failures = append(o.Failures, Failure{Node: n.name, Got: listed(n.pods)})
		}
	}
}

// nodesWith returns the nodes that have labels, after the simulation.
func nodesWith(r *report.Report, labels map[string]string) []*report.Node {
	_, after := r.State()
	return slices.DeleteFunc(after.List(), func(n *report.Node) bool { return differing(n, labels) != "" })
}

// differing returns the first label, by name, that a node does not have, or "".
func differing(n *report.Node, labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if got, ok := n.Label(key); !ok || got != labels[key] {
			return key
		}
	}
	return ""
}

func (o *Outcome) checkUtilization(u *v1alpha1.Utilization, r *report.Report) {
	nodes := slices.DeleteFunc(nodesWith(r, u.Labels),
		func(n *report.Node) bool { return n.Allocatable[u.Resource] == 0 })
	if len(nodes) == 0 {
		o.Got = "no node has the resource"
		return
	}
	slices.SortStableFunc(nodes, func(a, b *report.Node) int {
		return cmp.Compare(a.Utilization(u.Resource), b.Utilization(u.Resource))
	})
	lowest, highest := nodes[0].Utilization(u.Resource), nodes[len(nodes)-1].Utilization(u.Resource)
	value, single := 0.0, true
	switch percent, is := u.Percentile(); {
	case is: // the nearest rank
		rank := int(math.Ceil(float64(percent) / 100 * float64(len(nodes))))
		value = nodes[max(rank, 1)-1].Utilization(u.Resource)
	case u.Of == "total":
		var requested, allocatable float64
		for _, n := range nodes {
			requested, allocatable = requested+float64(n.Requested[u.Resource]), allocatable+float64(n.Allocatable[u.Resource])
		}
		value = requested / allocatable
	case u.Of == "mean":
		for _, n := range nodes {
			value += n.Utilization(u.Resource) / float64(len(nodes))
		}
	default:
		single = false
	}
	if single {
		o.Met, o.Got = within(u.Limits, value), part(value)
	} else {
		o.Met = within(u.Limits, lowest) && within(u.Limits, highest)
		o.Got = part(lowest) + " to " + part(highest)
	}
	if !o.Met {
		o.failNodes(u, nodes)
	}
}

// failNodes adds the nodes that are not within the limits, the worst first. Nodes are ordered by
// utilization.
func (o *Outcome) failNodes(u *v1alpha1.Utilization, nodes []*report.Node) {
	for _, n := range slices.Backward(nodes) {
		if value := n.Utilization(u.Resource); !within(u.Limits, value) {
			o.Failures = append(o.Failures, Failure{Node: n.Name, Got: fmt.Sprintf("%s: %s of %s", part(value),
				report.Amount(u.Resource, n.Requested[u.Resource]), report.Amount(u.Resource, n.Allocatable[u.Resource]))})
		}
	}
}

func part(value float64) string { return fmt.Sprintf("%.1f%%", 100*value) }

func (o *Outcome) checkSpread(e *v1alpha1.Expectation, r *report.Report) {
	s := e.Spread
	counts := map[string][]string{}
	outside, total := []Failure{}, 0
	all := podsOf(r)
	for i := range all {
		p := &all[i]
		if !p.matches(e) {
			continue
		}
		total++
		if p.on == nil {
			outside = append(outside, Failure{Pod: p.key, Got: p.String()})
		} else if group := groupOf(p.on, s.Over); group != "" {
			counts[group] = append(counts[group], p.key)
		} else {
			outside = append(outside, Failure{Pod: p.key, Node: p.on.Name, Got: p.String() + ", which has no " + s.Over})
		}
	}
	if total == 0 {
		o.Got = "no such pod"
		return
	}
	number := within(s.Limits, float64(len(counts)))
	o.Met = number
	groups := make([]string, 0, len(counts))
	for _, group := range sortedKeys(counts) {
		n := len(counts[group])
		groups = append(groups, fmt.Sprintf("%s %d", group, n))
		each := s.Each == nil || within(s.Each.Limits, float64(n))
		if !each {
			o.Met = false
		}
		if !number || !each {
			for _, key := range counts[group] {
				o.Failures = append(o.Failures, Failure{Pod: key, Got: "in " + group})
			}
		}
	}
	o.Got = fmt.Sprintf("%d: %s", len(counts), listed(groups))
	if !o.Met {
		o.Failures = append(o.Failures, outside...)
	}
}

// groupOf returns a node's zone or name, or a label's value.
func groupOf(n *report.Node, over string) string {
	switch over {
	case "zone":
		return n.Zone
	case "node":
		return n.Name
	}
	value, _ := n.Label(over)
	return value
}

func (o *Outcome) checkRequests(e *v1alpha1.Expectation, r *report.Report) {
	var sum int64
	var found []Failure
	all := podsOf(r)
	for i := range all {
		p := &all[i]
		if amount := p.Requests[e.Requests.Resource]; p.matches(e) && p.on != nil && amount > 0 {
			sum += amount
			found = append(found,
				Failure{Pod: p.key, Node: p.on.Name, Got: "requests " + report.Amount(e.Requests.Resource, amount)})
		}
	}
	value := float64(sum)
	if e.Requests.Resource == "cpu" {
		value /= 1000
	}
	o.Got = report.Amount(e.Requests.Resource, sum)
	if o.Met = within(e.Requests.Limits, value); !o.Met {
		o.Failures = found
	}
}
