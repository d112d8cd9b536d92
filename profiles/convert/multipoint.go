package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// expandMultiPoint writes multiPoint out for each extension point where the target lacks it.
func (c *profileConversion) expandMultiPoint() {
	if c.To.MultiPoint {
		return
	}
	key, multi := node.Remove(c.sets, schema.MultiPoint)
	m := multiPointExpansion{profileConversion: c, enabled: node.Items(multi, "enabled"),
		disabled: node.Items(multi, "disabled")}
	if len(m.enabled)+len(m.disabled) > 0 {
		m.run(key)
	}
}

// multiPointExpansion writes the enabled and disabled plugins of multiPoint under each extension
// point.
type multiPointExpansion struct {
	*profileConversion
	enabled, disabled []*yaml.Node
}

func (m *multiPointExpansion) run(key *yaml.Node) {
	m.Note(key, "multiPoint written out for each extension point: %s lacks it", m.To.Name)
	m.checkGatesStayEnabled()
	for _, e := range m.enabled {
		m.checkExpandable(e)
	}
	for _, e := range m.disabled {
		if name := node.Text(e, "name"); name != schema.AllPlugins {
			m.checkName(node.Get(e, "name"), name, true)
		}
	}
	for _, point := range schema.PointNames() {
		if !m.readsPoint(point) || schema.IsDisabled(m.sets, point, schema.AllPlugins) {
			continue
		}
		m.disableAt(point)
		m.enableAt(point)
	}
}

// checkExpandable rejects a plugin under multiPoint that would be lost: one that the release lacks,
// or whose extension points are unknown.
func (m *multiPointExpansion) checkExpandable(e *yaml.Node) {
	name := node.Text(e, "name")
	known, ok := m.pluginNamed(name)
	switch reaches := slices.ContainsFunc(known.Points, m.readsPoint); {
	case ok && m.exists(name) && reaches, name == schema.SchedulingGates && m.exists(name):
		return
	case versions.EverInTree(name) && !m.exists(name) && !m.Lossy:
		m.checkName(node.Get(e, "name"), name, false)
		return
	case versions.EverInTree(name) && !m.exists(name):
		m.Loss(e, "", "plugin %s does not exist in %s", name, m.Release)
		return
	case !m.exists(name) && m.Deploy:
		m.checkName(node.Get(e, "name"), name, false)
		return
	}
	m.Loss(e, "enable it under each extension point that it implements, such as filter or score",
		"%s has no multiPoint, and the extension points of plugin %s are unknown", m.To.Name, name)
}

// pluginNamed returns an in-tree or compiled-in plugin by name.
func (c *conversion) pluginNamed(name string) (schema.InTree, bool) {
	if points, ok := c.Points[name]; ok {
		return schema.InTree{Name: name, Points: points}, true
	}
	return schema.InTreeNamed(name)
}

// readsPoint reports whether the target has an extension point and does not ignore it.
func (c *conversion) readsPoint(name string) bool {
	return !slices.Contains(c.To.Ignored, name) &&
		slices.ContainsFunc(schema.ExtensionPoints(), func(p schema.ExtensionPoint) bool {
			return p.Name == name && schema.Field{APIs: p.APIs, Since: p.Since}.In(c.To)
		})
}

// disableAt disables at one extension point the plugins that multiPoint disables.
func (m *multiPointExpansion) disableAt(point string) {
	again := func(name string) bool {
		return slices.ContainsFunc(m.enabled, func(e *yaml.Node) bool { return node.Text(e, "name") == name })
	}
	for _, e := range m.disabled {
		name := node.Text(e, "name")
		hit := m.isV1beta2Default(point, name) && !again(name)
		if name == schema.AllPlugins {
			hit = slices.ContainsFunc(schema.InTreePlugins(),
				func(p schema.InTree) bool { return m.isV1beta2Default(point, p.Name) })
		}
		if hit && schema.Entry(m.sets, point, "disabled", name) == nil {
			schema.Disable(m.sets, point, name)
		}
	}
}

// enableAt enables at one extension point the plugins that multiPoint enables, if the point lacks
// the plugin or has another weight.
func (m *multiPointExpansion) enableAt(point string) {
	all := slices.ContainsFunc(m.disabled, func(e *yaml.Node) bool { return node.Text(e, "name") == schema.AllPlugins })
	for _, e := range m.enabled {
		name, weight := node.Text(e, "name"), 0
		p, known := m.pluginNamed(name)
		spreads := known && p.Implements(point, m.minor) && (name != schema.VolumeBinding || m.isV1beta2Default(point, name))
		if !spreads || schema.Entry(m.sets, point, "enabled", name) != nil ||
			schema.Entry(m.sets, point, "disabled", name) != nil {
			continue
		}
		if point == "score" {
			weight = max(1, node.Number(e, "weight"))
		}
		if all || !m.isV1beta2Default(point, name) || weight > 0 {
			schema.Enable(m.sets, point, name, weight)
		}
	}
}

// isV1beta2Default reports whether v1beta2, whose plugin names the document has here, enables a
// plugin at an extension point by default.
func (m *multiPointExpansion) isV1beta2Default(point, name string) bool {
	a, _ := schema.APINamed("v1beta2")
	return schema.IsDefault(a.Of(m.minor), point, name)
}

// checkGatesStayEnabled reports that SchedulingGates, which multiPoint disabled, cannot be disabled
// if the target ignores preEnqueue.
func (m *multiPointExpansion) checkGatesStayEnabled() {
	named := func(e *yaml.Node) bool { return node.Text(e, "name") == schema.SchedulingGates }
	if !m.Rules.SchedulingGates || slices.ContainsFunc(m.enabled, named) {
		return
	}
	for _, e := range m.disabled {
		if named(e) || node.Text(e, "name") == schema.AllPlugins {
			m.Loss(e, "enable "+schema.SchedulingGates+" too, if pods may wait for their gates",
				"%s cannot be disabled in %s, which ignores preEnqueue", schema.SchedulingGates, m.To.Name)
		}
	}
}
