package validate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// checkIgnored warns about what the scheduler accepts and ignores.
func (v *validator) checkIgnored() {
	if v.doc.Policy {
		return
	}
	for _, p := range node.Items(v.doc.Root, "profiles") {
		plugins := node.Get(p, "plugins")
		for _, set := range schema.PluginSets(plugins) {
			v.ignoredPoint(set)
			v.ignoredDisabled(set)
			v.ignoredWeights(set)
		}
		for _, e := range node.Items(p, "pluginConfig") {
			v.ignoredArgs(plugins, e)
		}
	}
	if !v.Converted && node.Text(v.doc.Root, "clientConnection", "kubeconfig") == "" {
		v.warn(nil, "set it, unless the scheduler uses the service account of its pod",
			"clientConnection.kubeconfig is not set, and the scheduler ignores --kubeconfig if --config is set")
	}
}

// ignoredPoint warns about an extension point that the config API accepts without effect.
func (v *validator) ignoredPoint(set schema.PluginSet) {
	if slices.Contains(v.api.Ignored, set.Point) && len(set.Node.Content) > 0 {
		v.warn(set.Key, "enable the plugins at each extension point, or convert the file to another config API",
			"%s has no effect: %s accepts and ignores it", set.Point, v.api.Name)
	}
}

// ignoredDisabled warns about plugins that are disabled where they cannot run.
func (v *validator) ignoredDisabled(set schema.PluginSet) {
	for _, e := range node.Items(set.Node, "disabled") {
		switch name := node.Text(e, "name"); {
		case name == "" || name == schema.AllPlugins || slices.Contains(v.Plugins, name):
		case !v.available(name):
			if !v.Converted {
				v.warn(node.Get(e, "name"), v.remedy(name), "%s.disabled: plugin %q does not exist in %s; the line has no effect",
					set.Point, name, v.Release)
			}
		case !schema.CanEnable(name, set.Point, v.api.Minor):
			v.warn(node.Get(e, "name"), "remove it, or disable it at an extension point that it implements",
				"%s.disabled: plugin %s does not implement %s in %s; the line has no effect", set.Point, name, set.Point,
				v.Release)
		}
	}
}

// ignoredWeights warns about weights that the scheduler does not use.
func (v *validator) ignoredWeights(set schema.PluginSet) {
	for _, e := range node.Items(set.Node, "enabled") {
		weight := node.Get(e, "weight")
		switch {
		case node.IsNull(weight):
		case set.Point == "score" && node.Number(weight) == 0:
			v.warn(weight, "to switch the plugin off, list it under disabled", "weight 0 of plugin %s means 1", node.Text(e, "name"))
		case set.Point != "score" && set.Point != schema.MultiPoint && node.Number(weight) != 0:
			v.warn(weight, "set the weight under score", "the weight of plugin %s under %s has no effect", node.Text(e, "name"),
				set.Point)
		}
	}
}

// ignoredArgs warns about arguments that reach no plugin.
func (v *validator) ignoredArgs(plugins, e *yaml.Node) {
	name, at := node.Text(e, "name"), node.Get(e, "name")
	switch {
	case name == "": // reported by checkFields
	case !v.available(name):
		if !v.Converted {
			v.warn(at, v.remedy(name), "pluginConfig: plugin %q does not exist in %s; its arguments have no effect", name, v.Release)
		}
	case !v.runs(plugins, name):
		v.warn(at, "enable the plugin, or remove its arguments",
			"pluginConfig: plugin %s is not enabled in the profile; its arguments have no effect", name)
	case slices.Contains(v.Plugins, name):
		version := node.Get(e, "args", "apiVersion")
		group, api, _ := strings.Cut(node.Text(version), "/")
		if group == schema.ConfigGroup && api != v.api.Name {
			v.warn(version, "write "+v.api.GroupVersion(), "args of plugin %s: apiVersion %s in a %s file", name,
				node.Text(version), v.api.Name)
		}
	}
}

// runs reports whether a profile may initialize a plugin, which reads its arguments then.
func (v *validator) runs(plugins *yaml.Node, name string) bool {
	for _, point := range schema.PointNames() {
		names, _, unknown := schema.PluginsAt(plugins, point, v.api)
		if slices.Contains(names, name) || slices.Contains(unknown, name) {
			return true
		}
	}
	_, known := schema.InTreeNamed(name)
	// Feature gates enable in-tree plugins whose extension points are not in the table.
	return slices.Contains(v.Rules.Plugins, name) && !known
}
