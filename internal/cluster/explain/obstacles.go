package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// obstacle is a reason why a node cannot have the pod, computed from the objects.
type obstacle struct {
	node     string
	cause    Cause
	resource string
	// detail is the taint, the port or the labels.
	detail string
	// by is the pod that uses a port.
	by    string
	short shortage
}

// obstacles returns the reasons why each node refuses the pod, as far as they follow from the node
// and the pods on it alone.
func obstacles(in Input) []obstacle {
	var found []obstacle
	for i := range in.Nodes {
		found = append(found, nodeObstacles(in, &in.Nodes[i])...)
	}
	return found
}

// nodeObstacles returns a node's first obstacle, as a scheduler does, and all resources that it
// lacks. A taint does not matter on a node that the pod's node selector excludes.
func nodeObstacles(in Input, node *corev1.Node) []obstacle {
	all := allObstacles(in, node)
	if len(all) == 0 {
		return nil
	}
	first := all[0].cause
	return slices.DeleteFunc(all, func(o obstacle) bool { return o.cause != first })
}

// allObstacles returns a node's obstacles for each kind, in a scheduler's order.
func allObstacles(in Input, node *corev1.Node) []obstacle {
	var found []obstacle
	add := func(cause Cause, detail, by string) {
		found = append(found, obstacle{node: node.Name, cause: cause, detail: detail, by: by})
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(in.Pod).Match(node); err == nil && !ok {
		add(NodeAffinity, strings.Join(nodeRequirements(in.Pod), " and "), "")
	}
	if cause, taint := untolerated(in.Pod, node); taint != "" {
		add(cause, taint, "")
	}
	if in.Usage == nil {
		return found // the pods are unknown
	}
	used := in.Usage[node.Name]
	if used != nil {
		for _, port := range hostPorts(in.Pod) {
			if by := used.Ports[port]; by != "" {
				add(HostPort, port, by)
				break
			}
		}
	}
	short := shortages(in.Pod, node, used)
	for _, name := range slices.Sorted(maps.Keys(short)) {
		found = append(found, obstacle{node: node.Name, cause: Resource, resource: name, short: short[name]})
	}
	return found
}

// Node returns the reasons why one node refuses a pod, as far as they follow from the node and the
// pods on it alone.
func Node(in Input, name string) []Finding {
	var findings []Finding
	for i := range in.Nodes {
		if in.Nodes[i].Name != name {
			continue
		}
		for _, group := range groupObstacles(allObstacles(in, &in.Nodes[i])) {
			findings = append(findings, group.finding(in))
		}
	}
	return findings
}

// untolerated returns the first taint on a node that a pod does not tolerate.
func untolerated(pod *corev1.Pod, node *corev1.Node) (Cause, string) {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints),
			corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !kubeapi.Tolerates(pod.Spec.Tolerations, taint) {
			return causeOfTaint(taint.Key), taint.ToString()
		}
	}
	return "", ""
}

// nodeRequirements describes a pod's node selector and required node affinity.
func nodeRequirements(pod *corev1.Pod) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		texts = append(texts, key+"="+pod.Spec.NodeSelector[key])
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil &&
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		texts = append(texts, selectorText(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution))
	}
	return texts
}

// selectorText describes a node selector, whose terms are alternatives.
func selectorText(selector *corev1.NodeSelector) string {
	var terms []string
	for _, term := range selector.NodeSelectorTerms {
		var parts []string
		for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, ", or ")
}

// group is the obstacles of one kind.
type group struct {
	cause    Cause
	resource string
	detail   string
	nodes    []string
	by       []string
	short    []shortage
}

// groupObstacles groups obstacles, the group with the most nodes first.
func groupObstacles(found []obstacle) []group {
	var groups []group
	for _, o := range found {
		at := slices.IndexFunc(groups, func(g group) bool {
			return g.cause == o.cause && g.resource == o.resource && g.detail == o.detail
		})
		if at < 0 {
			groups = append(groups, group{cause: o.cause, resource: o.resource, detail: o.detail})
			at = len(groups) - 1
		}
		groups[at].nodes = append(groups[at].nodes, o.node)
		if o.by != "" && !slices.Contains(groups[at].by, o.by) {
			groups[at].by = append(groups[at].by, o.by)
		}
		if o.cause == Resource {
			groups[at].short = append(groups[at].short, o.short)
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })
	return groups
}

// combined describes a group, with the further obstacles if each of its nodes has one: its remedy
// alone would not help then. Otherwise the remedy is about the nodes without further obstacles.
func (g group) combined(in Input) Finding {
	if g.cause == Resource {
		return g.finding(in)
	}
	var helped []string
	var rest []obstacle
	for i := range in.Nodes {
		if !slices.Contains(g.nodes, in.Nodes[i].Name) {
			continue
		}
		further := slices.DeleteFunc(allObstacles(in, &in.Nodes[i]), func(o obstacle) bool { return o.cause == g.cause })
		if rest = append(rest, further...); len(further) == 0 {
			helped = append(helped, in.Nodes[i].Name)
		}
	}
	f := g.finding(in)
	if len(helped) > 0 {
		g.nodes = helped
		f.Fix = g.finding(in).Fix
		return f
	}
	for _, further := range groupObstacles(rest) {
		own := further.finding(in)
		f.Text += "; among them " + own.Text
		if fix := further.hopeless(in.Pod); fix != "" && len(further.nodes) == len(g.nodes) {
			f.Fix = fix
			return f
		}
		f.Fix += ", and " + own.Fix
	}
	return f
}

// hopeless returns the remedy for nodes that are too small for the pod, or "" if one is not.
func (g group) hopeless(pod *corev1.Pod) string {
	if g.cause != Resource || slices.ContainsFunc(g.short, func(s shortage) bool { return !s.tooSmall() }) {
		return ""
	}
	return shortFix(pod, g.resource, g.short)
}

// finding describes a group.
func (g group) finding(in Input) Finding {
	f := Finding{Cause: g.cause, Resource: g.resource, Nodes: len(g.nodes),
		Examples: g.nodes[:min(len(g.nodes), maxNames)]}
	nodes := func(one, many string) string { return plural.Phrase(len(g.nodes), "node "+one, "nodes "+many) }
	switch g.cause {
	case Resource:
		f.By, f.Text, f.Fix = "NodeResourcesFit", shortText(g.resource, g.short), shortFix(in.Pod, g.resource, g.short)
	case Taint:
		f.By, f.Text = "TaintToleration", nodes("has", "have")+" the untolerated taint "+g.detail
		f.Fix = "add a toleration of " + g.detail + " to the pod, or remove the taint"
	case NotReady:
		f.By, f.Text = "TaintToleration", nodes("is", "are")+" not ready: taint "+g.detail
		f.Fix = "repair " + list(g.nodes)
	case Cordoned:
		f.By, f.Text = "NodeUnschedulable", nodes("is", "are")+" cordoned"
		f.Fix = "kubectl uncordon " + g.nodes[0]
	case NodeAffinity:
		f.By, f.Text = "NodeAffinity", nodes("does", "do")+" not match the pod's "+g.detail
		f.Fix = "label a node, or change the pod's node selector or affinity"
	case HostPort:
		f.By, f.Text = "NodePorts", nodes("has", "have")+" no free host port "+g.detail+", used by "+list(g.by)
		f.Fix = "use another host port, or a Service"
	}
	return f
}
