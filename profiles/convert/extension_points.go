package convert

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// dropIgnored removes the plugin sets that the source's config API accepts and ignores: in another
// one they would take effect.
func (c *profileConversion) dropIgnored() {
	for _, point := range c.from.Ignored {
		key, set := node.Remove(c.sets, point)
		if node.IsMapping(set) && len(set.Content) > 0 {
			c.Note(key, "%s left out: %s accepts and ignores it, so it had no effect; to enable it, write the file in v1", point,
				c.from.Name)
		}
	}
}

// dropUnsupportedPoints removes the plugin sets of extension points that the target lacks; it is a
// loss if one enables a plugin.
func (c *profileConversion) dropUnsupportedPoints() {
	for _, p := range schema.ExtensionPoints() {
		key, set := node.Lookup(c.sets, p.Name)
		if key == nil || (schema.Field{APIs: p.APIs, Since: p.Since}).In(c.To) {
			continue
		}
		if enabled := node.Items(set, "enabled"); len(enabled) > 0 {
			c.Loss(key, "remove it, or enable the plugin at another extension point",
				"%s has no extension point %s, where %s is enabled", c.Release, p.Name, node.Text(enabled[0], "name"))
		} else {
			c.Note(key, "%s left out: %s does not have that extension point, so there is nothing to disable", p.Name, c.Release)
		}
		node.Remove(c.sets, p.Name)
	}
}

// dropUnsupportedEntries removes plugins that do not implement the extension point in the target,
// since the scheduler would not start. Without preFilter and preScore they do the same work later;
// a missing score is a loss.
func (c *profileConversion) dropUnsupportedEntries() {
	for _, set := range schema.PluginSets(c.sets) {
		for _, e := range slices.Clone(node.Items(set.Node, "enabled")) {
			name := node.Text(e, "name")
			p, _ := schema.InTreeNamed(name)
			switch {
			case slices.Contains(c.Plugins, name) || schema.CanEnable(name, set.Point, c.minor):
			case !slices.Contains(p.Points, set.Point):
				c.Refuse(e, "remove the line", "plugin %s does not implement %s", name, set.Point)
			case set.Point == "score":
				schema.DropEntry(c.sets, set.Point, "enabled", e)
				c.Loss(e, "remove the line", "plugin %s does not score in %s", name, c.Release)
			default:
				schema.DropEntry(c.sets, set.Point, "enabled", e)
				c.Note(e, "%s left out of %s: in %s it does not implement this extension point, and works at the others", name,
					set.Point, c.Release)
			}
		}
	}
}

// preEnqueue converts a plugin set that the target would accept and ignore. SchedulingGates, which
// has no other extension point, can be enabled under multiPoint.
func (c *profileConversion) preEnqueue() {
	const point = "preEnqueue"
	if !slices.Contains(c.To.Ignored, point) || !c.Rules.PreEnqueue {
		return
	}
	_, set := node.Remove(c.sets, point)
	for _, e := range node.Items(set, "enabled") {
		switch name := node.Text(e, "name"); {
		case name == schema.SchedulingGates && c.Rules.SchedulingGates:
			c.Note(e, "%s left out: it is a default of %s, which ignores preEnqueue", name, c.Release)
		case name == schema.SchedulingGates && c.To.MultiPoint:
			schema.Enable(c.sets, schema.MultiPoint, name, 0)
			c.Note(e, "%s moved to multiPoint: %s accepts and ignores preEnqueue", name, c.To.Name)
		default:
			c.Loss(e, "write the file in v1, or enable the plugin under multiPoint",
				"%s accepts and ignores preEnqueue, so %s would have no effect", c.To.Name, name)
		}
	}
	for _, e := range node.Items(set, "disabled") {
		name := node.Text(e, "name")
		switch gates := name == schema.SchedulingGates || name == schema.AllPlugins; {
		case !gates || !c.Rules.SchedulingGates:
			c.Note(e, "%s need not be disabled under preEnqueue: it is not a default in %s", name, c.Release)
		case c.To.MultiPoint:
			if !schema.IsDisabled(c.sets, schema.MultiPoint, schema.SchedulingGates) {
				schema.Disable(c.sets, schema.MultiPoint, schema.SchedulingGates)
			}
			c.Note(e, "%s disabled under multiPoint: %s accepts and ignores preEnqueue", schema.SchedulingGates, c.To.Name)
		default:
			c.Loss(e, "remove the line", "%s cannot be disabled in %s, which ignores preEnqueue", schema.SchedulingGates,
				c.To.Name)
		}
	}
}
