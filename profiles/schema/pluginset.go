package schema

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// AllPlugins in a list of disabled plugins stands for all the defaults.
const AllPlugins = "*"

// PluginSet is the plugin set of one extension point.
type PluginSet struct {
	Point string
	Key   *yaml.Node
	Node  *yaml.Node
}

// PluginSets returns the plugin sets of a profile in their order, without those
// that are empty.
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

// Entry returns the element of a set's list ("enabled", "disabled") that names a
// plugin, or nil.
func Entry(plugins *yaml.Node, point, in, name string) *yaml.Node {
	for _, e := range node.Items(plugins, point, in) {
		if node.Text(e, "name") == name {
			return e
		}
	}
	return nil
}

// IsDisabled says whether a set disables a default plugin, by name or with all.
func IsDisabled(plugins *yaml.Node, point, name string) bool {
	return Entry(plugins, point, "disabled", name) != nil || Entry(plugins, point, "disabled", AllPlugins) != nil
}

// DisabledNames returns the names that a set disables.
func DisabledNames(plugins *yaml.Node, point string) []string {
	var names []string
	for _, e := range node.Items(plugins, point, "disabled") {
		names = append(names, node.Text(e, "name"))
	}
	return names
}

// Enable adds a plugin to a set; weight 0 is not written.
func Enable(plugins *yaml.Node, point, name string, weight int) {
	added := node.Mapping("name", node.String(name))
	if weight > 0 {
		node.Put(added, "weight", node.Int(weight))
	}
	l := node.List(node.Child(plugins, point), "enabled")
	l.Content = append(l.Content, added)
}

// Disable adds a plugin to what a set disables.
func Disable(plugins *yaml.Node, point, name string) {
	l := node.List(node.Child(plugins, point), "disabled")
	l.Content = append(l.Content, node.Mapping("name", node.String(name)))
}

// DropEntry removes an element from a set's list.
func DropEntry(plugins *yaml.Node, point, in string, gone *yaml.Node) {
	node.Filter(node.Get(plugins, point, in), func(n *yaml.Node) bool { return n != gone })
}

// Rename gives an element of a list another name; its comments and weight stay.
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

// ArgsOf returns the args of a plugin, and makes them where there are none.
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

// PointNames returns the names of all extension points but multiPoint.
func PointNames() []string {
	var names []string
	for _, p := range ExtensionPoints() {
		if p.Name != MultiPoint {
			names = append(names, p.Name)
		}
	}
	return names
}
