package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/versions"
)

// CanEnable reports whether a plugin can be enabled at an extension point. Unknown plugins can.
func CanEnable(name, point string, minor int) bool {
	if name == ResourcesFit && point == "score" && !(versions.Release{Major: 1, Minor: minor}).Rules().FitScores {
		return false
	}
	p, known := InTreeNamed(name)
	return !known || point == MultiPoint || minor > lastSurveyed || p.Implements(point, minor)
}

// IsDefault reports whether a config API enables a plugin at an extension point by default.
// NodeResourcesFit scores from v1beta2; VolumeBinding scores where multiPoint enables it.
func IsDefault(a API, point, name string) bool {
	p, ok := InTreeNamed(name)
	return ok && p.isDefault(a, point)
}

func (p InTree) isDefault(a API, point string) bool {
	switch {
	case !p.Defaults.Has(a.Set) || a.Minor != 0 && a.Minor < p.Minor:
		return false
	case point == MultiPoint:
		return a.MultiPoint
	case p.Name == ResourcesFit && point == "score":
		return a.Set != InV1beta1
	case p.Name == VolumeBinding && (point == "preScore" || point == "score"):
		return a.MultiPoint
	}
	return p.Implements(point, a.Minor)
}

// EffectivePlugins returns the plugins that run at an extension point, with their weights. The
// weight is 0 if a plugin does not score.
func EffectivePlugins(plugins *yaml.Node, point string, a API) map[string]int {
	found := map[string]int{}
	for _, name := range MergedPlugins(plugins, point, a) {
		weight := 0
		if point == "score" {
			known, _ := InTreeNamed(name)
			weight = known.Weight(a)
			if e := Entry(plugins, point, "enabled", name); e != nil {
				weight = max(1, node.Number(e, "weight"))
			}
		}
		found[name] = weight
	}
	return found
}

// MergedPlugins returns an extension point's plugins merged with the config API's defaults
// (mergePluginSet in <api>/default_plugins.go).
func MergedPlugins(plugins *yaml.Node, point string, a API) []string {
	var names []string
	replaced := map[string]bool{} // defaults that are enabled by name keep their place
	for _, p := range InTreePlugins() {
		perPoint := !a.MultiPoint || point == MultiPoint
		if perPoint && p.isDefault(a, point) && !IsDisabled(plugins, point, p.Name) {
			names = append(names, p.Name)
			replaced[p.Name] = !a.Duplicates && Entry(plugins, point, "enabled", p.Name) != nil
		}
	}
	for _, e := range node.Items(plugins, point, "enabled") {
		name := node.Text(e, "name")
		if !replaced[name] {
			names = append(names, name)
		}
		replaced[name] = false // enabled again, it is there twice
	}
	return names
}

// PluginsAt returns the plugins that run at an extension point, the plugins that the point and
// multiPoint both enable, and the compiled-in plugins of multiPoint, which run there if they
// implement the extension point (expandMultiPointPlugins in
// pkg/scheduler/framework/runtime/framework.go).
func PluginsAt(plugins *yaml.Node, point string, a API) (names, overrides, unknown []string) {
	names = MergedPlugins(plugins, point, a)
	if !a.MultiPoint {
		return names, nil, nil
	}
	for _, name := range MergedPlugins(plugins, MultiPoint, a) {
		p, known := InTreeNamed(name)
		switch {
		case IsDisabled(plugins, point, name):
		case slices.Contains(names, name):
			overrides = append(overrides, name)
		case !known:
			unknown = append(unknown, name)
		case p.Implements(point, a.Minor):
			names = append(names, name)
		}
	}
	return names, overrides, unknown
}
