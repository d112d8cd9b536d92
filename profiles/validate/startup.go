package validate

import (
	"cmp"
	"slices"

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
		v.checkPlugins(node.Get(p, "plugins"))
	}
}

// checkPlugins checks a profile's plugins as the scheduler does when it initializes them.
func (v *validator) checkPlugins(plugins *yaml.Node) {
	for _, set := range schema.PluginSets(plugins) {
		if !slices.Contains(v.api.Ignored, set.Point) {
			v.checkEnabledTwice(plugins, set)
		}
	}
	sorters, _, unknown := schema.PluginsAt(plugins, schema.PointQueueSort, v.api)
	if n := len(sorters); n > 1 || n == 0 && len(unknown) == 0 {
		v.add(cmp.Or(node.Get(plugins, schema.PointQueueSort), node.Get(plugins, schema.MultiPoint)), "enable one plugin",
			"%d queueSort plugins are enabled: must be 1", n)
	}
	binders, _, unknown := schema.PluginsAt(plugins, schema.PointBind, v.api)
	if len(binders)+len(unknown) == 0 {
		v.add(cmp.Or(node.Get(plugins, schema.PointBind), node.Get(plugins, schema.MultiPoint)), "enable DefaultBinder",
			"no bind plugin is enabled")
	}
	v.checkWeights(plugins)
}

// checkWeights adds up the weights as the scheduler does, in its order (getScoreWeights in
// pkg/scheduler/framework/runtime/framework.go). Its check for an overflow also fails if the sum is
// negative before the last plugin. Up to 1.21 the order is random.
func (v *validator) checkWeights(plugins *yaml.Node) {
	sum, seen := 0, map[string]bool{}
	for _, point := range []string{"score", schema.MultiPoint} {
		if point == schema.MultiPoint && !v.api.MultiPoint {
			continue
		}
		for _, name := range schema.MergedPlugins(plugins, point, v.api) {
			p, known := schema.InTreeNamed(name)
			if seen[name] || point == schema.MultiPoint && known && !p.Implements("score", v.api.Minor) {
				continue
			}
			weight := p.Weight(v.api)
			e := schema.Entry(plugins, point, "enabled", name)
			if e != nil {
				weight = cmp.Or(node.Number(e, "weight"), 1)
			}
			if sum < 0 || weight < 0 && !v.Rules.WritesDefaultPlugins {
				v.add(e, "use weights of at least 1", "the sum of the weights is negative at plugin %s: %s does not start", name,
					v.Release)
				return
			}
			sum += weight
			seen[name] = true
		}
	}
}

// checkNames rejects enabled plugins that the release does not have, or that do not implement the
// extension point.
func (v *validator) checkNames() {
	for _, p := range node.Items(v.doc.Root, "profiles") {
		for _, set := range schema.PluginSets(node.Get(p, "plugins")) {
			if !slices.Contains(v.api.Ignored, set.Point) {
				v.pluginNames(set)
			}
		}
	}
}

func (v *validator) pluginNames(set schema.PluginSet) {
	for _, e := range node.Items(set.Node, "enabled") {
		switch name := node.Text(e, "name"); {
		case name == "": // reported by checkFields
		case v.available(name):
			v.checkImplements(set, e, name)
		default:
			v.add(node.Get(e, "name"), v.remedy(name), "plugin %q does not exist in %s", name, v.Release)
		}
	}
}

// available reports whether a plugin can be enabled in the release.
func (v *validator) available(name string) bool {
	return slices.Contains(v.Rules.Plugins, name) || slices.Contains(v.Plugins, name)
}

// remedy returns what to do about a plugin that the release does not have.
func (v *validator) remedy(name string) string {
	if advice := schema.Successor(name); advice != "" {
		return advice
	}
	if versions.EverInTree(name) {
		return "remove it: only other releases have it"
	}
	if meant := schema.Nearest(name, slices.Concat(v.Rules.Plugins, v.Plugins)); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "compile it in: `pmk-sched build --with`; if it is compiled in, use --plugin " + name
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
