package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Running are the plugins that run in a profile.
type Running struct {
	Profile string
	// Points are the plugins of each extension point with their weights, which are 0 if a plugin does
	// not score. Plugins whose extension points are unknown are at filter, and in-tree plugins that a
	// feature gate enables at multiPoint.
	Points map[string]map[string]int
}

// RunningPlugins returns the plugins that run in each profile of a configuration, as a release
// reads it. gates are the feature gates that flags set.
func RunningPlugins(source []byte, release versions.Release, gates map[string]bool) ([]Running, error) {
	doc, err := schema.Read("configuration", source, false)
	if err != nil {
		return nil, fmt.Errorf("read which plugins a scheduler runs: %w", err)
	}
	api, inTree := doc.API.Of(release.Minor), release.Rules().Plugins
	var all []Running
	for _, profile := range doc.Profiles() {
		plugins := node.Get(profile, "plugins")
		r := Running{Profile: node.Text(profile, "schedulerName"), Points: map[string]map[string]int{}}
		for _, point := range schema.PointNames() {
			names, _ := pluginsAt(plugins, point, api)
			for _, name := range names {
				if versions.EverInTree(name) && !slices.Contains(inTree, name) {
					continue // a default of the config API that the release removed
				}
				r.add(point, name, weightOf(plugins, point, name, api))
			}
		}
		for _, name := range release.GatedPlugins(gates) {
			if !schema.IsDisabled(plugins, schema.MultiPoint, name) {
				r.add(schema.MultiPoint, name, 0)
			}
		}
		all = append(all, r)
	}
	return all, nil
}

func (r *Running) add(point, name string, weight int) {
	if r.Points[point] == nil {
		r.Points[point] = map[string]int{}
	}
	r.Points[point][name] = weight
}

// weightOf returns the weight of a plugin at an extension point.
func weightOf(plugins *yaml.Node, point, name string, api schema.API) int {
	if point != "score" {
		return 0
	}
	for _, at := range []string{point, schema.MultiPoint} {
		if e := schema.Entry(plugins, at, "enabled", name); e != nil {
			return max(1, node.Number(e, "weight"))
		}
	}
	known, _ := schema.InTreeNamed(name)
	return max(1, known.Weight(api))
}
