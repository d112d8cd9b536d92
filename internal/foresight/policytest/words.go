package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// describe returns an expectation's name. The default is its pods and its result.
func describe(e *v1alpha1.Expectation) string {
	if e.Name != "" {
		return e.Name
	}
	if subject := subjectOf(e); subject != "" {
		return subject + ": " + expected(e)
	}
	return expected(e)
}

// subjectOf describes the pods in an expectation.
func subjectOf(e *v1alpha1.Expectation) string {
	var parts []string
	if e.Pod != "" {
		parts = append(parts, e.Pod)
	}
	if e.Workload != "" {
		parts = append(parts, "workload "+e.Workload)
	}
	if len(e.Labels) > 0 {
		parts = append(parts, pairs(e.Labels))
	}
	return strings.Join(parts, ", ")
}

// expected describes the expected result.
func expected(e *v1alpha1.Expectation) string {
	text := ""
	switch {
	case e.Copies != nil:
		return "copies that fit: " + limits(e.Copies.Limits)
	case e.EmptyNodes != nil:
		return "empty nodes" + with(e.EmptyNodes.Labels) + ": " + limits(e.EmptyNodes.Limits)
	case e.Utilization != nil:
		of := e.Utilization.Of
		if of == "" {
			of = "each"
		}
		return fmt.Sprintf("utilization of %s, %s of the nodes%s: %s", e.Utilization.Resource, of,
			with(e.Utilization.Labels), limits(e.Utilization.Limits))
	case e.Spread != nil:
		return spread(e.Spread)
	case e.Requests != nil:
		return "requests of " + e.Requests.Resource + ": " + limits(e.Requests.Limits)
	case e.SameAs != nil:
		return "the same nodes as by " + baselineName(e.SameAs)
	case e.Evicted != nil && *e.Evicted:
		text = "evicted"
	case e.Evicted != nil:
		text = "not evicted"
	case e.Moved != nil && *e.Moved:
		text = "moved to another node"
	case e.Moved != nil:
		text = "not moved"
	case e.Evicts != "":
		text = "evicts " + e.Evicts
	case e.Pending != nil && *e.Pending == "":
		text = pending
	case e.Pending != nil:
		text = pending + ": " + string(*e.Pending)
	case e.NodeLabels != nil:
		text = "on a node with " + pairs(e.NodeLabels)
	case e.Node != "":
		text = "on node " + e.Node
	default:
		text = "on node " + strings.Join(e.Nodes, " or ")
	}
	if e.Count != nil {
		text += ": " + limits(e.Count.Limits) + " pods"
	}
	return text
}

func spread(s *v1alpha1.Spread) string {
	var parts []string
	if text := limits(s.Limits); text != "" {
		parts = append(parts, "spread over "+s.Over+": "+text)
	}
	if s.Each != nil {
		parts = append(parts, "pods in each "+s.Over+": "+limits(s.Each.Limits))
	}
	return strings.Join(parts, ", ")
}

// baselineName describes another scheduler.
func baselineName(s *v1alpha1.SameAs) string {
	var parts []string
	if s.Scheduler != "" {
		parts = append(parts, s.Scheduler)
	}
	if s.Preset != "" {
		parts = append(parts, "preset "+s.Preset)
	}
	if s.Branch != "" {
		parts = append(parts, s.Branch)
	}
	return strings.Join(parts, ", ")
}

func limits(l v1alpha1.Limits) string {
	var parts []string
	for _, limit := range []struct {
		word   string
		amount *v1alpha1.Amount
	}{
		{"exactly ", l.Exactly}, {"at least ", l.AtLeast}, {"at most ", l.AtMost}, {"above ", l.Above}, {"below ", l.Below},
	} {
		if limit.amount != nil {
			parts = append(parts, limit.word+limit.amount.Text)
		}
	}
	return strings.Join(parts, " and ")
}

func with(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	return " with " + pairs(labels)
}

func pairs(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}
