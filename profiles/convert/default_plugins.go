package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// keepDefaultWeights writes out the default weights of the source where the target has different
// ones, so that scores keep their proportions.
func (c *profileConversion) keepDefaultWeights() {
	if c.doc.Preset {
		return
	}
	var kept []string
	for _, p := range schema.InTreePlugins() {
		was, is := p.Weight(c.from), p.Weight(c.To)
		if was == is || !p.Defaults.Has(c.from.Set) || !p.Defaults.Has(c.To.Set) ||
			schema.Entry(c.sets, "score", "enabled", p.Name) != nil || schema.IsDisabled(c.sets, "score", p.Name) {
			continue
		}
		schema.Enable(c.sets, "score", p.Name, was)
		kept = append(kept, fmt.Sprintf("%s %d (not %d)", p.Name, was, is))
	}
	if len(kept) > 0 {
		c.Note(node.Get(c.doc.Root, "apiVersion"),
			"default weights of %s written out under score, since %s has different ones: %s", c.from.Name, c.To.Name,
			strings.Join(kept, ", "))
	}
}

// lostDefaults reports the default plugins of the source's config API that the target removed
// without a successor, unless the source disabled them: off contains the disabled plugins.
func (c *conversion) lostDefaults(off []string) {
	for _, f := range schema.RemovedPlugins() {
		p, _ := schema.InTreeNamed(f.Name)
		if c.doc.Preset || f.Successor != "" || c.exists(f.Name) || !p.Defaults.Has(c.from.Set) ||
			slices.Contains(off, f.Name) || slices.Contains(off, schema.AllPlugins) {
			continue
		}
		c.Note(node.Get(c.doc.Root, "apiVersion"), "%s, a default of %s, does not exist in %s: %s", f.Name, c.from.Name,
			c.Release, f.Why)
	}
}

// dropWrittenDefaults removes default plugins that the target does not have, if multiPoint writes
// out all defaults, as --write-config-to does: a file without them means the same.
func (c *profileConversion) dropWrittenDefaults() {
	const point = schema.MultiPoint
	if schema.Entry(c.sets, point, "enabled", "PrioritySort") == nil ||
		schema.Entry(c.sets, point, "enabled", schema.DefaultBinder) == nil {
		return
	}
	for _, e := range slices.Clone(node.Items(c.sets, point, "enabled")) {
		name := node.Text(e, "name")
		if c.exists(name) || !versions.EverInTree(name) || schema.Successor(name) != "" || node.Number(e, "weight") != 0 {
			continue
		}
		schema.DropEntry(c.sets, point, "enabled", e)
		c.Note(e, "%s left out: it is a default of other releases, and %s does not have it", name, c.Release)
	}
}

// defaultsFirst keeps the order where it matters: the source's config API puts a default that is
// enabled again before the other plugins.
func (c *profileConversion) defaultsFirst(set schema.PluginSet) {
	slices.SortStableFunc(node.Items(set.Node, "enabled"), func(a, b *yaml.Node) int {
		first := func(e *yaml.Node) int {
			if name := node.Text(e, "name"); schema.IsDefault(c.To, set.Point, name) &&
				!schema.IsDisabled(c.sets, set.Point, name) {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
}

// disableFirst disables each default plugin that is enabled by name, where the target would
// otherwise enable it twice and fail to start.
func (c *profileConversion) disableFirst() {
	if !c.To.Duplicates {
		return
	}
	for _, set := range schema.PluginSets(c.sets) {
		if !c.from.Duplicates && (set.Point == schema.PointBind || set.Point == "postFilter") {
			c.defaultsFirst(set)
		}
		for _, e := range node.Items(set.Node, "enabled") {
			name := node.Text(e, "name")
			if !schema.IsDefault(c.To, set.Point, name) || schema.IsDisabled(c.sets, set.Point, name) {
				continue
			}
			schema.Disable(c.sets, set.Point, name)
			if c.from.Duplicates && !c.doc.Policy {
				c.Note(e, "%s disabled before it is enabled: it is a default of %s, and enabling it twice stops the scheduler",
					name, c.To.Name)
			}
		}
	}
}

// disableAvoidPods disables the one default of v1beta1 that later config APIs lack: it would
// outweigh all other plugins.
func (c *profileConversion) disableAvoidPods() {
	const point = "score"
	if c.doc.Preset || c.from.Set == schema.InV1beta1 || c.To.Set != schema.InV1beta1 ||
		schema.IsDisabled(c.sets, point, schema.NodePreferAvoidPods) ||
		schema.Entry(c.sets, point, "enabled", schema.NodePreferAvoidPods) != nil {
		return
	}
	schema.Disable(c.sets, point, schema.NodePreferAvoidPods)
	c.Note(node.Get(c.doc.Root, "apiVersion"), "%s disabled: it is a default of %s only", schema.NodePreferAvoidPods,
		c.To.Name)
}

// disableOverridden prevents multiPoint from enabling default plugins at an extension point that
// names at least two default plugins. The scheduler otherwise enables one of them twice and
// multiplies its scores by the weight twice, and scheduling fails if they get too high
// (expandMultiPointPlugins deletes from the list that it iterates over).
func (c *profileConversion) disableOverridden() {
	if !c.To.MultiPoint || !c.Rules.MultiPointTwice {
		return
	}
	for _, set := range schema.PluginSets(c.sets) {
		if set.Point == schema.MultiPoint || set.Point == schema.PointBind || set.Point == "postFilter" {
			continue // there the order counts, which disabling would change
		}
		var named []string
		for _, e := range node.Items(set.Node, "enabled") {
			if name := node.Text(e, "name"); c.reachedByMultiPoint(set.Point, name) {
				named = append(named, name)
			}
		}
		if len(named) < 2 {
			continue
		}
		for _, name := range named {
			schema.Disable(c.sets, set.Point, name)
		}
		c.Note(set.Key, "%s disabled under %s before they are enabled there: otherwise %s may run one of them twice",
			strings.Join(named, ", "), set.Point, c.Release)
	}
}

// disableLater disables a default plugin at preFilter too if it implements preFilter only in the
// target, and the source disables it everywhere else: preFilter alone can reject a node or the pod.
func (c *profileConversion) disableLater() {
	const point = "preFilter"
	if c.from.MultiPoint || !c.To.MultiPoint || schema.IsDisabled(c.sets, point, schema.AllPlugins) {
		return
	}
	for _, p := range schema.InTreePlugins() {
		if schema.IsDefault(c.from, point, p.Name) || !schema.IsDefault(c.To, point, p.Name) || !c.exists(p.Name) ||
			schema.IsDisabled(c.sets, point, p.Name) || schema.Entry(c.sets, point, "enabled", p.Name) != nil {
			continue
		}
		had := slices.DeleteFunc(slices.Clone(p.Points),
			func(at string) bool { return !schema.IsDefault(c.from, at, p.Name) })
		if len(had) > 0 && !slices.ContainsFunc(had, func(at string) bool { return !c.off(at, p.Name) }) {
			schema.Disable(c.sets, point, p.Name)
			c.Note(node.Get(c.sets, had[0], "disabled"), "%s disabled under %s too, which it implements in %s", p.Name, point,
				c.Release)
		}
	}
}

// off reports whether a default plugin is disabled at an extension point.
func (c *profileConversion) off(point, name string) bool {
	return schema.IsDisabled(c.sets, point, name) && schema.Entry(c.sets, point, "enabled", name) == nil
}
