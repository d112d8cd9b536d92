package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// expandMultiPoint writes multiPoint out for each extension point, where the
// target does not know it.
func (c *conversion) expandMultiPoint(plugins *yaml.Node) {
	if c.To.MultiPoint {
		return
	}
	key, multi := node.Remove(plugins, schema.MultiPoint)
	enabled, off := node.Items(multi, "enabled"), node.Items(multi, "disabled")
	if len(enabled)+len(off) == 0 {
		return
	}
	c.Note(key, "multiPoint written out for each extension point: %s does not have it", c.To.Name)
	c.checkGatesStayEnabled(enabled, off)
	for _, e := range enabled {
		c.checkExpandable(e)
	}
	for _, e := range off {
		if name := node.Text(e, "name"); name != schema.AllPlugins {
			c.checkName(node.Get(e, "name"), name, true)
		}
	}
	for _, point := range schema.PointNames() {
		if !c.readsPoint(point) || schema.IsDisabled(plugins, point, schema.AllPlugins) {
			continue
		}
		c.spreadDisabled(plugins, point, enabled, off)
		c.spreadEnabled(plugins, point, enabled, off)
	}
}

// checkExpandable refuses a plugin under multiPoint that would be lost: one that
// the release does not have, or whose extension points are not known here.
func (c *conversion) checkExpandable(e *yaml.Node) {
	name := node.Text(e, "name")
	known, ok := c.pluginNamed(name)
	switch reaches := slices.ContainsFunc(known.Points, c.readsPoint); {
	case ok && c.exists(name) && reaches, name == schema.SchedulingGates && c.exists(name):
		return
	case schema.EverInTree(name) && !c.exists(name) && !c.Lossy:
		c.checkName(node.Get(e, "name"), name, false)
		return
	case schema.EverInTree(name) && !c.exists(name):
		c.Loss(e, "", "plugin %s does not exist in %s", name, c.Release)
		return
	case !c.exists(name) && c.Deploy:
		c.checkName(node.Get(e, "name"), name, false)
		return
	}
	c.Loss(e, "enable it under each extension point that it implements, such as filter or score",
		"%s has no multiPoint, and which extension points plugin %s implements is not known here", c.To.Name, name)
}

// pluginNamed returns what is known of a plugin: an in-tree one, or one that was
// compiled in.
func (c *conversion) pluginNamed(name string) (schema.InTree, bool) {
	if points, ok := c.Points[name]; ok {
		return schema.InTree{Name: name, Points: points}, true
	}
	return schema.InTreeNamed(name)
}

// readsPoint says whether the target has an extension point and heeds it.
func (c *conversion) readsPoint(name string) bool {
	return !slices.Contains(c.To.Ignored, name) && slices.ContainsFunc(schema.ExtensionPoints(), func(p schema.ExtensionPoint) bool {
		return p.Name == name && schema.Field{APIs: p.APIs, Since: p.Since}.In(c.To)
	})
}

// spreadDisabled disables at one extension point what multiPoint disables.
func (c *conversion) spreadDisabled(plugins *yaml.Node, point string, enabled, off []*yaml.Node) {
	again := func(name string) bool {
		return slices.ContainsFunc(enabled, func(e *yaml.Node) bool { return node.Text(e, "name") == name })
	}
	for _, e := range off {
		name := node.Text(e, "name")
		hit := c.defaultOf22(point, name) && !again(name)
		if name == schema.AllPlugins {
			hit = slices.ContainsFunc(schema.InTreePlugins(), func(p schema.InTree) bool { return c.defaultOf22(point, p.Name) })
		}
		if hit && schema.Entry(plugins, point, "disabled", name) == nil {
			schema.Disable(plugins, point, name)
		}
	}
}

// spreadEnabled enables at one extension point what multiPoint enables and the
// point does not have yet, or has with another weight.
func (c *conversion) spreadEnabled(plugins *yaml.Node, point string, enabled, off []*yaml.Node) {
	all := slices.ContainsFunc(off, func(e *yaml.Node) bool { return node.Text(e, "name") == schema.AllPlugins })
	for _, e := range enabled {
		name, weight := node.Text(e, "name"), 0
		p, known := c.pluginNamed(name)
		spreads := known && p.Implements(point, c.minor) && (name != schema.VolumeBinding || c.defaultOf22(point, name))
		if !spreads || schema.Entry(plugins, point, "enabled", name) != nil ||
			schema.Entry(plugins, point, "disabled", name) != nil {
			continue
		}
		if point == "score" {
			weight = max(1, node.Number(e, "weight"))
		}
		if all || !c.defaultOf22(point, name) || weight > 0 {
			schema.Enable(plugins, point, name, weight)
		}
	}
}

// defaultOf22 says whether a plugin is a default of an extension point in the
// names of v1beta2, which are those of the source here.
func (c *conversion) defaultOf22(point, name string) bool {
	a, _ := schema.APINamed("v1beta2")
	return schema.IsDefault(a.Of(c.minor), point, name)
}
