package policytest

import (
	"path"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// pending is the state of a pod without a node.
const pending = "pending"

// pod is a pod after a simulation.
type pod struct {
	report.Pod
	key string
	// on is its node; nil: it has none. from is the node that it had before, by name.
	on   *report.Node
	from string
	// reason is the reason why it has no node. by is the pod that evicted it, and victims are the pods
	// that it evicted.
	reason  string
	evicted bool
	by      string
	victims []string
}

func (p *pod) node() string {
	if p.on == nil {
		return ""
	}
	return p.on.Name
}

// podsOf returns the pods in name order.
func podsOf(r *report.Report) []pod {
	before, after := r.State()
	byKey := map[string]*pod{}
	add := func(p report.Pod) *pod {
		key := p.Namespace + "/" + p.Name
		if byKey[key] == nil {
			byKey[key] = &pod{Pod: p, key: key}
		}
		return byKey[key]
	}
	for _, n := range before.List() {
		for _, p := range n.Pods {
			add(p).from = n.Name
		}
	}
	for _, n := range after.List() {
		for _, p := range n.Pods {
			add(p).on = n
		}
	}
	for _, p := range after.Pending() {
		add(p).reason = "the simulation did not schedule it"
	}
	for _, u := range r.Unplaced {
		p := add(report.Pod{Namespace: u.Namespace, Name: u.Name})
		p.reason, p.evicted, p.by = u.Reason, u.Reason == report.Evicted, u.By
	}
	for _, u := range r.Evicted {
		p := add(report.Pod{Namespace: u.Namespace, Name: u.Name})
		p.from, p.evicted, p.by = u.Node, true, u.By
	}
	all := make([]pod, 0, len(byKey))
	for _, p := range byKey {
		if preemptor := byKey[p.by]; p.evicted && preemptor != nil {
			preemptor.victims = append(preemptor.victims, p.key)
		}
	}
	for _, p := range byKey {
		slices.Sort(p.victims)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b pod) int { return strings.Compare(a.key, b.key) })
	return all
}

// matches reports whether an expectation is about the pod.
func (p *pod) matches(e *v1alpha1.Expectation) bool {
	for key, value := range e.Labels {
		if got, ok := p.Labels[key]; !ok || got != value {
			return false
		}
	}
	return (e.Pod == "" || matchName(e.Pod, p.key)) && (e.Workload == "" || p.inWorkload(e.Workload))
}

// inWorkload reports whether a pattern matches the pod's controller, or its ReplicaSet's
// Deployment.
func (p *pod) inWorkload(pattern string) bool {
	kind, name, ok := strings.Cut(p.Owner, "/")
	if !ok {
		return false
	}
	// The Deployment controller adds the template's hash to the name (getNewReplicaSet in
	// pkg/controller/deployment/sync.go).
	if deployment, ok := strings.CutSuffix(name, "-"+p.Labels["pod-template-hash"]); ok && kind == "ReplicaSet" {
		kind, name = "Deployment", deployment
	}
	if strings.Count(pattern, "/") > 1 {
		return matchName(pattern, p.Namespace+"/"+kind+"/"+name)
	}
	return matchName(pattern, p.Namespace+"/"+name)
}

// matchName reports whether a name equals or matches a pattern.
func matchName(pattern, name string) bool {
	matches, err := path.Match(pattern, name)
	return pattern == name || err == nil && matches
}

// meets describes the pod's state, and reports whether it has the result that an expectation
// requires.
func (p *pod) meets(e *v1alpha1.Expectation) (got string, ok bool) {
	got = p.String()
	switch {
	case e.Evicted != nil:
		return got, p.evicted == *e.Evicted
	case e.Moved != nil:
		moved := p.from != "" && p.from != p.node()
		if moved {
			got = "from " + p.from + ": " + got
		}
		return got, moved == *e.Moved
	case e.Evicts != "":
		victims := slices.DeleteFunc(slices.Clone(p.victims), func(v string) bool { return !matchName(e.Evicts, v) })
		if len(victims) == 0 {
			return "evicts none of them", false
		}
		return "evicts " + listed(victims), true
	case e.Pending != nil:
		return got, p.on == nil && !p.evicted && strings.Contains(p.reason, string(*e.Pending))
	case p.on == nil:
		return got, false
	case e.NodeLabels != nil:
		if key := differing(p.on, e.NodeLabels); key != "" {
			return got + ", which has not " + key + "=" + e.NodeLabels[key], false
		}
		return got, true
	}
	names := e.Nodes
	if e.Node != "" {
		names = []string{e.Node}
	}
	return got, slices.ContainsFunc(names, func(name string) bool { return matchName(name, p.on.Name) })
}

// String describes the pod's state.
func (p *pod) String() string {
	switch {
	case p.evicted && p.by != "":
		return "evicted by " + p.by
	case p.evicted:
		return "evicted"
	case p.on != nil:
		return "on node " + p.on.Name
	}
	return pending + ": " + p.reason
}

// mostListed limits the names in a text.
const mostListed = 5

// listed returns the first names in a list.
func listed(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return strings.Join(names[:mostListed], ", ") + " and " + plural.Count(more, "other")
	}
	return strings.Join(names, ", ")
}
