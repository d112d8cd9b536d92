package profiles

import "go.yaml.in/yaml/v3"

// everyPlugin in a list of disabled plugins stands for all the defaults.
const everyPlugin = "*"

// namedSet is the plugin set of one extension point.
type namedSet struct {
	point string
	key   *yaml.Node
	node  *yaml.Node
}

// pluginSets returns the plugin sets of a profile in their order, without those
// that are empty.
func pluginSets(plugins *yaml.Node) []namedSet {
	var sets []namedSet
	if !isMapping(plugins) {
		return nil
	}
	for i := 0; i+1 < len(plugins.Content); i += 2 {
		if isMapping(plugins.Content[i+1]) {
			sets = append(sets, namedSet{plugins.Content[i].Value, plugins.Content[i], plugins.Content[i+1]})
		}
	}
	return sets
}

// entry returns the element of a set's list ("enabled", "disabled") that names a
// plugin, or nil.
func entry(plugins *yaml.Node, point, in, name string) *yaml.Node {
	for _, e := range items(get(plugins, point, in)) {
		if text(get(e, "name")) == name {
			return e
		}
	}
	return nil
}

// disabled says whether a set disables a default plugin, by name or with all.
func disabled(plugins *yaml.Node, point, name string) bool {
	return entry(plugins, point, "disabled", name) != nil || entry(plugins, point, "disabled", everyPlugin) != nil
}

// disabledNames returns the names that a set disables.
func disabledNames(plugins *yaml.Node, point string) []string {
	var names []string
	for _, e := range items(get(plugins, point, "disabled")) {
		names = append(names, text(get(e, "name")))
	}
	return names
}

// enable adds a plugin to a set; weight 0 is not written.
func enable(plugins *yaml.Node, point, name string, weight int) {
	added := mapping("name", str(name))
	if weight > 0 {
		put(added, "weight", integer(weight))
	}
	l := list(child(plugins, point), "enabled")
	l.Content = append(l.Content, added)
}

// disable adds a plugin to what a set disables.
func disable(plugins *yaml.Node, point, name string) {
	l := list(child(plugins, point), "disabled")
	l.Content = append(l.Content, mapping("name", str(name)))
}

// drop removes an element from a set's list.
func drop(plugins *yaml.Node, point, in string, gone *yaml.Node) {
	keep(get(plugins, point, in), func(n *yaml.Node) bool { return n != gone })
}

// rename gives an element of a list another name; its comments and weight stay.
func rename(e *yaml.Node, name string) {
	_, value := lookup(e, "name")
	value.Value = name
}

// config returns the element of pluginConfig for a plugin, or nil.
func config(profile *yaml.Node, name string) *yaml.Node {
	for _, e := range items(get(profile, "pluginConfig")) {
		if text(get(e, "name")) == name {
			return e
		}
	}
	return nil
}

// configArgs returns the args of a plugin, and makes them where there are none.
func configArgs(profile *yaml.Node, name string) *yaml.Node {
	e := config(profile, name)
	if e == nil {
		e = mapping("name", str(name))
		l := list(profile, "pluginConfig")
		l.Content = append(l.Content, e)
	}
	return child(e, "args")
}

// dropConfig removes the element of pluginConfig for a plugin.
func dropConfig(profile, gone *yaml.Node) {
	keep(get(profile, "pluginConfig"), func(n *yaml.Node) bool { return n != gone })
}

// pointNames returns the names of all extension points but multiPoint.
func pointNames() []string {
	var names []string
	for _, p := range points() {
		if p.name != multiPoint {
			names = append(names, p.name)
		}
	}
	return names
}

const multiPoint = "multiPoint"
