package schema

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// AllPlugins disables all default plugins.
const AllPlugins = "*"

// PluginSet is the plugin set of one extension point.
type PluginSet struct {
	Point string
	Key   *yaml.Node
	Node  *yaml.Node
}

// PluginSets returns the plugin sets of a profile in document order, without empty ones.
func PluginSets(plugins *yaml.Node) []PluginSet {
	var sets []PluginSet
	if !node.IsMapping(plugins) {
		return nil
	}
	for i := 0; i+1 < len(plugins.Content); i += 2 {
		if node.IsMapping(plugins.Content[i+1]) {
			sets = append(sets, PluginSet{plugins.Content[i].Value, plugins.Content[i], plugins.Content[i+1]})
		}
	}
	return sets
}

// Entry returns the element with a plugin's name in a plugin set's list ("enabled", "disabled"), or
// nil.
func Entry(plugins *yaml.Node, point, in, name string) *yaml.Node {
	for _, e := range node.Items(plugins, point, in) {
		if node.Text(e, "name") == name {
			return e
		}
	}
	return nil
}

// IsDisabled reports whether a plugin set disables a default plugin, by name or with "*".
func IsDisabled(plugins *yaml.Node, point, name string) bool {
	return Entry(plugins, point, "disabled", name) != nil || Entry(plugins, point, "disabled", AllPlugins) != nil
}

// DisabledNames returns the names that a plugin set disables.
func DisabledNames(plugins *yaml.Node, point string) []string {
	var names []string
	for _, e := range node.Items(plugins, point, "disabled") {
		names = append(names, node.Text(e, "name"))
	}
	return names
}

// Enable adds a plugin to a plugin set; a weight of 0 is omitted.
func Enable(plugins *yaml.Node, point, name string, weight int) {
	added := node.Mapping("name", node.String(name))
	if weight > 0 {
		node.Put(added, "weight", node.Int(weight))
	}
	l := node.List(node.Child(plugins, point), "enabled")
	l.Content = append(l.Content, added)
}

// Disable disables a plugin in a plugin set.
func Disable(plugins *yaml.Node, point, name string) {
	l := node.List(node.Child(plugins, point), "disabled")
	l.Content = append(l.Content, node.Mapping("name", node.String(name)))
}

// DropEntry removes an element from a list of a plugin set.
func DropEntry(plugins *yaml.Node, point, in string, gone *yaml.Node) {
	node.Filter(node.Get(plugins, point, in), func(n *yaml.Node) bool { return n != gone })
}

// Rename renames an element of a list; its comments and weight are kept.
func Rename(e *yaml.Node, name string) {
	_, value := node.Lookup(e, "name")
	value.Value = name
}

// ConfigOf returns the element of pluginConfig for a plugin, or nil.
func ConfigOf(profile *yaml.Node, name string) *yaml.Node {
	for _, e := range node.Items(profile, "pluginConfig") {
		if node.Text(e, "name") == name {
			return e
		}
	}
	return nil
}

// ArgsOf returns the args of a plugin and creates them if there are none.
func ArgsOf(profile *yaml.Node, name string) *yaml.Node {
	e := ConfigOf(profile, name)
	if e == nil {
		e = node.Mapping("name", node.String(name))
		l := node.List(profile, "pluginConfig")
		l.Content = append(l.Content, e)
	}
	return node.Child(e, "args")
}

// DropConfig removes the element of pluginConfig for a plugin.
func DropConfig(profile, gone *yaml.Node) {
	node.Filter(node.Get(profile, "pluginConfig"), func(n *yaml.Node) bool { return n != gone })
}

// PointNames returns the names of all extension points except multiPoint.
func PointNames() []string {
	var names []string
	for _, p := range ExtensionPoints() {
		if p.Name != MultiPoint {
			names = append(names, p.Name)
		}
	}
	return names
}
