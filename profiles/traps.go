package profiles

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// preEnqueue carries a plugin set that the target would accept and then ignore:
// through multiPoint, for the plugin that has no other extension point.
func (c *conversion) preEnqueue(plugins *yaml.Node) {
	const point = "preEnqueue"
	if !slices.Contains(c.to.ignored, point) || c.minor < 26 {
		return
	}
	_, set := remove(plugins, point)
	for _, e := range items(get(set, "enabled")) {
		switch name := text(get(e, "name")); {
		case name == schedulingGates && c.minor >= 27:
			c.note(e, "%s left out: it is a default of %s, which ignores preEnqueue", name, c.release)
		case name == schedulingGates && c.to.multiPoint:
			enable(plugins, multiPoint, name, 0)
			c.note(e, "%s moved to multiPoint: in %s preEnqueue is accepted and ignored", name, c.to.name)
		default:
			c.loss(e, "write the file in v1, which heeds it, or enable the plugin under multiPoint",
				"in %s preEnqueue is accepted and ignored, so %s would not be in effect there", c.to.name, name)
		}
	}
	for _, e := range items(get(set, "disabled")) {
		name := text(get(e, "name"))
		switch gates := name == schedulingGates || name == everyPlugin; {
		case !gates || c.minor < 27:
			c.note(e, "%s need not be disabled under preEnqueue: it is no default there in %s", name, c.release)
		case c.to.multiPoint:
			if !disabled(plugins, multiPoint, schedulingGates) {
				disable(plugins, multiPoint, schedulingGates)
			}
			c.note(e, "%s disabled under multiPoint: in %s preEnqueue is accepted and ignored", schedulingGates, c.to.name)
		default:
			c.loss(e, "leave the line out", "%s cannot be disabled in %s, which ignores preEnqueue", schedulingGates, c.to.name)
		}
	}
}

// gatesStay tells that SchedulingGates, which multiPoint switched off, cannot be
// off where the target ignores preEnqueue.
func (c *conversion) gatesStay(enabled, off []*yaml.Node) {
	named := func(e *yaml.Node) bool { return text(get(e, "name")) == schedulingGates }
	if c.minor < 27 || slices.ContainsFunc(enabled, named) {
		return
	}
	for _, e := range off {
		if named(e) || text(get(e, "name")) == everyPlugin {
			c.loss(e, "enable "+schedulingGates+" beside it, if pods may wait for their gates",
				"%s cannot be disabled in %s, which ignores preEnqueue", schedulingGates, c.to.name)
		}
	}
}

// keepOutAvoidPods disables the one default of v1beta1 that later config APIs do
// not have: it would outweigh all others, as it never did for the source.
func (c *conversion) keepOutAvoidPods(plugins *yaml.Node) {
	const point = "score"
	if c.doc.preset || c.from.set == inV1beta1 || c.to.set != inV1beta1 || disabled(plugins, point, nodePreferAvoidPods) ||
		entry(plugins, point, "enabled", nodePreferAvoidPods) != nil {
		return
	}
	disable(plugins, point, nodePreferAvoidPods)
	c.note(get(c.doc.root, "apiVersion"), "%s disabled: it is a default of %s only", nodePreferAvoidPods, c.to.name)
}

// disableOverridden keeps multiPoint from bringing default plugins to an extension
// point that names two of them or more itself: up to 1.29.0 the scheduler then
// enables one of them twice, and multiplies its scores by the weight twice, which
// ends scheduling where they get too high (expandMultiPointPlugins in
// pkg/scheduler/framework/runtime/framework.go: it deletes from the list that it
// walks along). What is disabled by name is not brought, so nothing is doubled.
func (c *conversion) disableOverridden(plugins *yaml.Node) {
	if !c.to.multiPoint || c.minor >= 30 {
		return
	}
	for _, set := range pluginSets(plugins) {
		if set.point == multiPoint || set.point == pointBind || set.point == "postFilter" {
			continue // there the order counts, which disabling would change
		}
		var named []string
		for _, e := range items(get(set.node, "enabled")) {
			if name := text(get(e, "name")); c.spreads(plugins, set.point, name) {
				named = append(named, name)
			}
		}
		if len(named) < 2 {
			continue
		}
		for _, name := range named {
			disable(plugins, set.point, name)
		}
		c.note(set.key, "%s disabled under %s too, before they are enabled there: %s may run one of them twice otherwise", strings.Join(named, ", "), set.point, c.release)
	}
}

// disableLater disables a default plugin at preFilter too, where it came to take
// part in that later, and the source disables it wherever its config API has it:
// preFilter alone can reject a node or the pod.
func (c *conversion) disableLater(plugins *yaml.Node) {
	const point = "preFilter"
	if c.from.multiPoint || !c.to.multiPoint || disabled(plugins, point, everyPlugin) {
		return
	}
	for _, p := range inTreePlugins() {
		if isDefault(c.from, point, p.name) || !isDefault(c.to, point, p.name) || !c.exists(p.name) ||
			disabled(plugins, point, p.name) || entry(plugins, point, "enabled", p.name) != nil {
			continue
		}
		had := slices.DeleteFunc(slices.Clone(p.points), func(at string) bool { return !isDefault(c.from, at, p.name) })
		if len(had) > 0 && !slices.ContainsFunc(had, func(at string) bool { return !c.off(plugins, at, p.name) }) {
			disable(plugins, point, p.name)
			c.note(get(plugins, had[0], "disabled"), "%s disabled under %s too, where it takes part in %s", p.name, point, c.release)
		}
	}
}

// spreadDefaulting writes out how PodTopologySpread comes by its default
// constraints: from v1beta2 on a list of them alone is refused
// (pkg/scheduler/apis/config/<api>/defaults.go).
func (c *conversion) spreadDefaulting(p *yaml.Node) {
	args := get(config(p, podTopologySpread), "args")
	key, constraints := lookup(args, "defaultConstraints")
	if c.from.set != inV1beta1 || c.to.set == inV1beta1 || len(items(constraints)) == 0 || text(get(args, "defaultingType")) != "" {
		return
	}
	put(args, "defaultingType", str("List"))
	c.note(key, "defaultingType List written out: %s would take System, and refuse constraints beside it", c.to.name)
}

// nodeLabels carries the nodes that the plugin NodeLabel filtered, which ended
// with 1.22, to affinity that NodeAffinity adds to every pod. What it scored is
// not the same there.
func (c *conversion) nodeLabels(p, plugins *yaml.Node) {
	args := get(config(p, nodeLabel), "args")
	e := entry(plugins, "filter", "enabled", nodeLabel)
	if e == nil || c.exists(nodeLabel) || c.off(plugins, "filter", "NodeAffinity") {
		return
	}
	var wanted []*yaml.Node
	for _, labels := range []struct{ field, operator string }{{"presentLabels", "Exists"}, {"absentLabels", "DoesNotExist"}} {
		for _, label := range items(get(args, labels.field)) {
			wanted = append(wanted, mapping("key", str(text(label)), "operator", str(labels.operator)))
		}
	}
	if len(wanted) == 0 {
		return
	}
	required := child(child(configArgs(p, "NodeAffinity"), "addedAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	terms := list(required, "nodeSelectorTerms")
	if len(terms.Content) == 0 {
		terms.Content = append(terms.Content, mapping())
	}
	for _, term := range terms.Content { // any of the terms is enough, so each has to ask for the labels
		expressions := list(term, "matchExpressions")
		for _, w := range wanted {
			expressions.Content = append(expressions.Content, mapping("key", get(w, "key"), "operator", get(w, "operator")))
		}
	}
	drop(plugins, "filter", "enabled", e)
	remove(args, "presentLabels")
	remove(args, "absentLabels")
	if onlyType(args) {
		dropConfig(p, config(p, nodeLabel))
	}
	c.note(e, "NodeLabel becomes addedAffinity of NodeAffinity, which asks for the same labels of every node: %s does not have it", c.release)
}

// off says whether a default plugin is not at work at an extension point.
func (c *conversion) off(plugins *yaml.Node, point, name string) bool {
	return disabled(plugins, point, name) && entry(plugins, point, "enabled", name) == nil
}
