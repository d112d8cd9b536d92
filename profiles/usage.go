package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Usage returns the features that a configuration, or a legacy Policy, uses and that known problems
// of a release depend on. It does not include the feature gates.
func Usage(source []byte, release versions.Release) (versions.Usage, error) {
	doc, err := schema.Read("configuration", source, false)
	if err != nil {
		return versions.Usage{}, fmt.Errorf("read which plugins and extenders a scheduler uses: %w", err)
	}
	var usage versions.Usage
	for _, e := range node.Items(doc.Root, "extenders") {
		extender := schema.ReadExtender(e)
		usage.Extenders = true
		usage.WholeNodes = usage.WholeNodes || extender.FilterVerb != "" && !node.IsTrue(e, "nodeCacheCapable")
	}
	if doc.Policy {
		return usage, nil // its plugins are the plugins of the default profile
	}
	api := doc.API.Of(release.Minor)
	for _, profile := range doc.Profiles() {
		addProfile(&usage, node.Get(profile, "plugins"), api)
	}
	slices.Sort(usage.Plugins)
	usage.Plugins = slices.Compact(usage.Plugins)
	return usage, nil
}

// addProfile adds the features that one profile uses.
func addProfile(usage *versions.Usage, plugins *yaml.Node, api schema.API) {
	running := map[string]int{} // by extension point
	for _, point := range schema.PointNames() {
		names, overrides := pluginsAt(plugins, point, api)
		running[point] = len(names)
		usage.Overrides = usage.Overrides || api.MultiPoint && loadedTwice(enabledAt(plugins, point), overrides)
		for _, name := range names {
			if versions.EverInTree(name) {
				usage.Plugins = append(usage.Plugins, name)
			} else {
				usage.OutOfTree = true
			}
		}
	}
	usage.FewScores = usage.FewScores || running["score"] < running["preScore"]
}

// pluginsAt returns the plugins that run at an extension point, and the plugins that the point and
// multiPoint both enable. A compiled-in plugin of multiPoint is counted once, at filter: its
// configuration does not show where it runs.
func pluginsAt(plugins *yaml.Node, point string, api schema.API) (names, overrides []string) {
	names, overrides, unknown := schema.PluginsAt(plugins, point, api)
	if point == "filter" {
		names = append(names, unknown...)
	}
	return names, overrides
}

func enabledAt(plugins *yaml.Node, point string) []string {
	var names []string
	for _, e := range node.Items(plugins, point, "enabled") {
		names = append(names, node.Text(e, "name"))
	}
	return names
}

// loadedTwice reports whether the scheduler loads one of the plugins that an extension point
// enables twice (kubernetes#122066). While it iterates over them, expandMultiPointPlugins in
// pkg/scheduler/framework/runtime/framework.go deletes the plugins that multiPoint enables too. The
// other plugins move forward, so that it visits the last one again if it has not reached it yet.
func loadedTwice(enabled, overrides []string) bool {
	first := slices.IndexFunc(enabled, func(name string) bool { return slices.Contains(overrides, name) })
	last := len(enabled) - 1
	return first >= 0 && first < last-1 && slices.Contains(overrides, enabled[last])
}
