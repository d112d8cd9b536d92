package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// replaceNames replaces each plugin that the release removed with its successor, and drops entries
// that only disable one.
func (c *profileConversion) replaceNames() {
	for _, set := range schema.PluginSets(c.sets) {
		for _, e := range slices.Clone(node.Items(set.Node, "enabled")) {
			name := node.Text(e, "name")
			if f, gone := schema.RemovedNamed(name); gone && !c.exists(name) {
				c.replaceName(set.Point, e, f)
			}
		}
		for _, e := range slices.Clone(node.Items(set.Node, "disabled")) {
			name := node.Text(e, "name")
			if f, gone := schema.RemovedNamed(name); gone && !c.exists(name) {
				schema.DropEntry(c.sets, set.Point, "disabled", e)
				c.Note(e, "%s is no longer disabled: %s does not have it; %s", name, c.Release, f.Why)
			}
		}
	}
	for _, e := range slices.Clone(node.Items(c.profile, "pluginConfig")) {
		name := node.Text(e, "name")
		if f, gone := schema.RemovedNamed(name); gone && !c.exists(name) {
			schema.DropConfig(c.profile, e)
			c.Note(e, "the arguments of %s left out: %s does not have it; %s", name, c.Release, f.Why)
		} else if advice := schema.Successor(name); advice != "" && !c.exists(name) {
			schema.DropConfig(c.profile, e)
			c.Note(e, "the arguments of %s left out: %s does not have it, so they have no effect; %s", name, c.Release, advice)
		}
	}
}

func (c *profileConversion) replaceName(point string, e *yaml.Node, f schema.Removed) {
	if f.Successor == "" {
		schema.DropEntry(c.sets, point, "enabled", e)
		c.Loss(e, f.Try, "plugin %s does not exist in %s: %s", f.Name, c.Release, f.Why)
		return
	}
	there := schema.Entry(c.sets, point, "enabled", f.Successor) != nil ||
		schema.IsDefault(c.To, point, f.Successor) && !schema.IsDisabled(c.sets, point, f.Successor) ||
		c.reachedByMultiPoint(point, f.Successor)
	if there {
		schema.DropEntry(c.sets, point, "enabled", e)
		c.Note(e, "%s left out: %s does not have it; %s, which is already enabled", f.Name, c.Release, f.Why)
		return
	}
	schema.Rename(e, f.Successor)
	c.Note(e, "%s becomes %s: %s does not have it; %s", f.Name, f.Successor, c.Release, f.Why)
}

// reachedByMultiPoint reports whether multiPoint enables a plugin at an extension point.
func (c *profileConversion) reachedByMultiPoint(point, name string) bool {
	if !c.To.MultiPoint || point == schema.MultiPoint || schema.IsDisabled(c.sets, point, name) {
		return false
	}
	return schema.Entry(c.sets, schema.MultiPoint, "enabled", name) != nil ||
		schema.IsDefault(c.To, schema.MultiPoint, name) && !schema.IsDisabled(c.sets, schema.MultiPoint, name)
}

// nodeLabels converts the NodeLabel plugin's filter, which was removed after 1.22, to
// NodeAffinity's addedAffinity. Its scores have no equivalent.
func (c *profileConversion) nodeLabels() {
	args := node.Get(schema.ConfigOf(c.profile, schema.NodeLabel), "args")
	e := schema.Entry(c.sets, "filter", "enabled", schema.NodeLabel)
	if e == nil || c.exists(schema.NodeLabel) || c.off("filter", "NodeAffinity") {
		return
	}
	var wanted []*yaml.Node
	for _, labels := range []struct{ field, operator string }{{"presentLabels", "Exists"}, {
		"absentLabels", "DoesNotExist"}} {
		for _, label := range node.Items(args, labels.field) {
			wanted = append(wanted, node.Mapping("key", node.String(node.Text(label)), "operator", node.String(labels.operator)))
		}
	}
	if len(wanted) == 0 {
		return
	}
	required := node.Child(node.Child(schema.ArgsOf(c.profile, "NodeAffinity"), "addedAffinity"),
		"requiredDuringSchedulingIgnoredDuringExecution")
	terms := node.List(required, "nodeSelectorTerms")
	if len(terms.Content) == 0 {
		terms.Content = append(terms.Content, node.Mapping())
	}
	for _, term := range terms.Content { // any of the terms is enough, so each has to ask for the labels
		expressions := node.List(term, "matchExpressions")
		for _, w := range wanted {
			expressions.Content = append(expressions.Content,
				node.Mapping("key", node.Get(w, "key"), "operator", node.Get(w, "operator")))
		}
	}
	schema.DropEntry(c.sets, "filter", "enabled", e)
	node.Remove(args, "presentLabels")
	node.Remove(args, "absentLabels")
	if onlyType(args) {
		schema.DropConfig(c.profile, schema.ConfigOf(c.profile, schema.NodeLabel))
	}
	c.Note(e, "NodeLabel becomes addedAffinity of NodeAffinity, which requires the same labels: %s does not have it",
		c.Release)
}
