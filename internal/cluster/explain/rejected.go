package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// rejected explains a pod that a scheduler has tried to place.
func rejected(in Input, text string) []Finding {
	message, ok := parseFit(text)
	if !ok || len(message.reasons) == 0 {
		return failed(in, text)
	}
	groups := groupObstacles(obstacles(in))
	var findings []Finding
	for _, reason := range message.reasons {
		findings = append(findings, reasonFindings(in, reason, groups)...)
	}
	findings = mergeClaims(findings, claimFindings(in))
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(weight(in, b), weight(in, a)) })
	if f := noVictims(in, message.preemption, findings); f != nil {
		findings = append(findings, *f)
	}
	if f := changed(in, findings); f != nil {
		findings = append(findings, *f)
	}
	fixes := map[string]bool{}
	for i, f := range findings {
		if fixes[f.Fix] {
			findings[i].Fix = ""
		}
		fixes[f.Fix] = true
	}
	return findings
}

// weight orders findings: findings about the pod first, then findings about the most nodes. Taints,
// and nodes that the pod's node selector excludes, usually are intended: they come last, unless the
// selector matches no node.
func weight(in Input, f Finding) int {
	const rank = 1 << 30
	w := f.Nodes
	if f.excluded {
		return w + rank
	}
	switch f.Cause {
	case MissingClaim, MissingClass, MissingPV, UnboundClaim:
		return w + 5*rank
	case NotReady, Cordoned:
		return w + 3*rank
	case Taint:
		return w + 2*rank
	case NodeAffinity:
		if matching(in) > 0 {
			return w + rank
		}
	}
	return w + 4*rank
}

// matching returns the number of nodes that match the pod's node selector and required node
// affinity.
func matching(in Input) (n int) {
	required := nodeaffinity.GetRequiredNodeAffinity(in.Pod)
	for i := range in.Nodes {
		if ok, err := required.Match(&in.Nodes[i]); err == nil && ok {
			n++
		}
	}
	return n
}

// reasonFindings describes a reason from the scheduler, with details from the objects.
func reasonFindings(in Input, reason countedReason, groups []group) []Finding {
	if reason.text == generic {
		return nil
	}
	cause, plugin := classify(reason.text)
	if cause == "" {
		return []Finding{foreign(in, reason)}
	}
	f := Finding{Cause: cause, By: plugin, Nodes: reason.nodes,
		Text: fmt.Sprintf("%s: %s", plural.Count(reason.nodes, "node"), reason.text)}
	switch cause {
	case Resource:
		f.Resource = resourceOf(reason.text)
		return []Finding{withGroup(in, f, groups)}
	case Taint, NotReady, Cordoned:
		return taintFindings(in, f, reason.text, groups)
	case NodeAffinity, HostPort:
		return []Finding{withGroup(in, f, groups)}
	}
	f.detail(in)
	if fit := matching(in); f.Nodes > fit && 0 < fit && fit < len(in.Nodes) {
		f.Text += fmt.Sprintf("; %s the pod's node selector, the scheduler counts the others too",
			plural.Phrase(fit, "node matches", "nodes match"))
	}
	return []Finding{f}
}

// resourceOf returns the resource that a reason from NodeResourcesFit names.
func resourceOf(text string) string {
	if name, ok := strings.CutPrefix(text, "Insufficient "); ok {
		return strings.TrimSpace(name)
	}
	return string(corev1.ResourcePods)
}

// withGroup adds the computed details for the same cause. It keeps the scheduler's number of nodes,
// unless that includes nodes with a different obstacle: up to 1.24.9 all plugins judge each node.
func withGroup(in Input, f Finding, groups []group) Finding {
	at := slices.IndexFunc(groups, func(g group) bool { return g.cause == f.Cause && g.resource == f.Resource })
	if at < 0 {
		return withFurther(in, f)
	}
	g := groups[at]
	if f.Cause == NodeAffinity && len(g.nodes) > f.Nodes {
		g.nodes = g.nodes[:f.Nodes] // the scheduler reports the others for their taints
	}
	own := g.combined(in)
	f.Examples, f.Fix = own.Examples, own.Fix
	switch {
	case own.Nodes == f.Nodes:
		f.Text = own.Text
	case own.Nodes < f.Nodes && f.Nodes <= own.Nodes+excludedNodes(groups):
		f.Text = fmt.Sprintf("%s (the scheduler counts %d, with nodes that the pod's node selector or a taint excludes)",
			own.Text, f.Nodes)
		f.Nodes = own.Nodes
	default:
		f.Text += " (now " + own.Text + ")"
	}
	return f
}

// withFurther adds the computed details for nodes that have another obstacle before the cause. The
// remedy is with the first obstacle, unless the pod fits on none of the nodes.
func withFurther(in Input, f Finding) Finding {
	var all []obstacle
	for i := range in.Nodes {
		all = append(all, allObstacles(in, &in.Nodes[i])...)
	}
	for _, g := range groupObstacles(all) {
		if own := g.finding(in); g.cause == f.Cause && g.resource == f.Resource && own.Nodes == f.Nodes {
			own.Fix = g.hopeless(in.Pod)
			return own
		}
	}
	return f
}

// excludedNodes returns the number of nodes that the pod's node selector or a taint excludes.
func excludedNodes(groups []group) (n int) {
	for _, g := range groups {
		switch g.cause {
		case NodeAffinity, Taint, NotReady, Cordoned: // a node has one of them
			n += len(g.nodes)
		}
	}
	return n
}

// taintFindings describes a reason about taints. From 1.34 on it names none, so that the nodes'
// taints are used.
func taintFindings(in Input, f Finding, text string, groups []group) []Finding {
	named := taintKey.FindStringSubmatch(text)
	var findings []Finding
	for _, g := range groups {
		if named != nil && !strings.HasPrefix(g.detail, taintPrefix(named[1], named[2])) {
			continue
		}
		if named == nil && f.Cause == Taint && (g.cause == Taint || g.cause == NotReady) || g.cause == f.Cause {
			findings = append(findings, g.combined(in))
		}
	}
	for _, own := range findings {
		f.Nodes -= own.Nodes
	}
	if f.Nodes <= 0 {
		return findings
	}
	f.excluded = matching(in) < len(in.Nodes)
	f.Text = fmt.Sprintf("%s: %s", plural.Count(f.Nodes, "node"), text)
	switch {
	case !f.excluded:
		f.detail(in)
	case f.Nodes <= len(in.Nodes)-matching(in):
		f.Text += ", which the pod's node selector excludes"
	}
	return append(findings, f)
}

// taintPrefix returns how a taint's text begins: key=value:effect, or key:effect.
func taintPrefix(key, value string) string {
	if value != "" {
		key += "=" + value
	}
	return key + ":"
}

// foreign describes a reason that no kube-scheduler plugin gives.
func foreign(in Input, reason countedReason) Finding {
	f := Finding{Cause: Plugin, Nodes: reason.nodes,
		Text: fmt.Sprintf("%s: %s", plural.Count(reason.nodes, "node"), reason.text)}
	s := findScheduler(in.Schedulers, schedulerOf(in.Pod))
	if s == nil {
		return f
	}
	f.By = s.suspects(reason.text)
	if len(s.Plugins) == 0 && len(s.Extenders) > 0 {
		f.Cause = ExtenderNo
	}
	if f.By != "" {
		f.Text += ", by " + f.By
	}
	return f
}

// mergeClaims replaces the scheduler's findings about claims by the findings about the claims
// themselves, which are more precise.
func mergeClaims(findings, claims []Finding) []Finding {
	if len(claims) == 0 {
		return findings
	}
	nodes := 0
	rest := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		switch f.Cause {
		case UnboundClaim, MissingClaim, MissingClass, MissingPV, NoVolume:
			nodes = max(nodes, f.Nodes)
			return true
		}
		return false
	})
	for i := range claims {
		claims[i].Nodes = nodes
	}
	return append(rest, claims...)
}

// changed reports nodes that have no obstacle any more, if all that the scheduler reported can be
// computed.
func changed(in Input, findings []Finding) *Finding {
	if in.Usage == nil {
		return nil
	}
	for _, f := range findings {
		switch f.Cause {
		case Resource, Taint, NotReady, Cordoned, NodeAffinity, HostPort, Priority:
		default:
			return nil
		}
	}
	blocked := map[string]bool{}
	for _, o := range obstacles(in) {
		blocked[o.node] = true
	}
	var free []string
	for i := range in.Nodes {
		if name := in.Nodes[i].Name; !blocked[name] {
			free = append(free, name)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return &Finding{
		Cause: Retry, Examples: free[:min(len(free), maxNames)],
		Text: fmt.Sprintf("since then %s room for the pod: %s; the scheduler tries again within minutes",
			plural.Phrase(len(free), "node has", "nodes have"), list(free)),
	}
}
