package validate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// checkStartup checks for errors that the scheduler reports when it builds its profiles
// (NewFramework in pkg/scheduler/framework/runtime/framework.go) and sets up leader election.
func (v *validator) checkStartup() {
	root := v.doc.Root
	if v.doc.Policy {
		return
	}
	lease := node.Get(root, "leaderElection")
	elects := node.IsNull(lease, "leaderElect") || node.IsTrue(lease, "leaderElect")
	lock := node.Get(lease, "resourceLock")
	if name := node.Text(lock); elects && name != "" && !slices.Contains(v.Rules.ResourceLocks, name) {
		v.add(lock, "use leases", "invalid resourceLock %q: %s does not support it", name, v.Release)
	}
	for _, p := range node.Items(root, "profiles") {
		plugins := node.Get(p, "plugins")
		for _, set := range schema.PluginSets(plugins) {
			v.pluginNames(set)
			v.checkEnabledTwice(plugins, set)
		}
		if n := len(schema.MergedPlugins(plugins, "queueSort", v.api)); n > 1 || n == 0 && !v.reaches(plugins, "queueSort") {
			v.add(node.Get(plugins, "queueSort"), "enable one plugin", "%d queueSort plugins are enabled: must be 1", n)
		}
		if len(schema.MergedPlugins(plugins, "bind", v.api)) == 0 && !v.reaches(plugins, "bind") {
			v.add(node.Get(plugins, "bind"), "enable DefaultBinder", "no bind plugin is enabled")
		}
	}
}

// reaches reports whether multiPoint may enable plugins at an extension point, so that its plugins
// are unknown.
func (v *validator) reaches(plugins *yaml.Node, point string) bool {
	return v.api.MultiPoint &&
		(node.Get(plugins, schema.MultiPoint) != nil || !schema.IsDisabled(plugins, point, schema.AllPlugins))
}

func (v *validator) pluginNames(set schema.PluginSet) {
	if slices.Contains(v.api.Ignored, set.Point) {
		return
	}
	available := slices.Concat(v.Rules.Plugins, v.Plugins)
	for _, e := range node.Items(set.Node, "enabled") {
		name := node.Text(e, "name")
		if slices.Contains(available, name) {
			v.checkImplements(set, e, name)
			continue
		}
		try := "plugins of " + v.Release.String() + ": " + strings.Join(available, ", ")
		if meant := schema.Nearest(name, available); meant != "" {
			try = "did you mean " + meant + "?"
		} else if !versions.EverInTree(name) {
			try = "compile it in: `pmk-sched build --with`"
		}
		v.add(node.Get(e, "name"), try, "plugin %q does not exist in %s", name, v.Release)
	}
}

// checkImplements rejects an in-tree plugin at an extension point that it does not implement.
func (v *validator) checkImplements(set schema.PluginSet, e *yaml.Node, name string) {
	if slices.Contains(v.Plugins, name) || schema.CanEnable(name, set.Point, v.api.Minor) {
		return
	}
	v.add(node.Get(e, "name"), "remove it", "plugin %s does not implement %s in %s", name, set.Point, v.Release)
}

// checkEnabledTwice rejects a plugin that is enabled twice at one extension point.
func (v *validator) checkEnabledTwice(plugins *yaml.Node, set schema.PluginSet) {
	seen := map[string]bool{}
	for _, name := range schema.MergedPlugins(plugins, set.Point, v.api) {
		if seen[name] {
			where := schema.Entry(plugins, set.Point, "enabled", name)
			v.add(where, "disable it first: add `- name: "+name+"` to "+set.Point+".disabled, or remove one of them",
				"plugin %s is enabled twice under %s", name, set.Point)
		}
		seen[name] = true
	}
}
