package profiles

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// prober makes profiles from another profile's defaulted plugin sets.
type prober struct {
	sets *yaml.Node
	api  schema.API
	// queueSort and config are taken from the configuration. They are nil if it has none.
	queueSort, config *yaml.Node
}

// filtering are the extension points at which a plugin refuses nodes.
func filtering() []string { return []string{"filter", "preFilter"} }

// plugins returns the plugins that run at one of the filtering extension points.
func (p prober) plugins() []string {
	var names []string
	for _, point := range filtering() {
		for _, name := range p.running(point) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// running returns the plugins of an extension point in their order (expandMultiPointPlugins in
// pkg/scheduler/framework/runtime/framework.go). Plugins that are not in-tree may not implement the
// extension point.
func (p prober) running(point string) []string {
	explicit := enabledAt(p.sets, point)
	if !p.api.MultiPoint || schema.IsDisabled(p.sets, point, schema.AllPlugins) {
		return explicit
	}
	multi := slices.DeleteFunc(enabledAt(p.sets, schema.MultiPoint), func(name string) bool {
		return schema.IsDisabled(p.sets, point, name) || !schema.CanEnable(name, point, p.api.Minor)
	})
	both := slices.DeleteFunc(slices.Clone(explicit), func(name string) bool { return !slices.Contains(multi, name) })
	var names []string
	for _, name := range slices.Concat(both, multi, explicit) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// weights returns the weights of the plugins that may score.
func (p prober) weights() map[string]int64 {
	weights := map[string]int64{}
	points := []string{"score"}
	if p.api.MultiPoint {
		points = []string{schema.MultiPoint, "score"} // the latter wins
	}
	for _, point := range points {
		for _, e := range node.Items(p.sets, point, "enabled") {
			weights[node.Text(e, "name")] = int64(max(1, node.Number(e, "weight")))
		}
	}
	return weights
}

// profile returns a profile that filters with one plugin, or with none if it has no name, and does
// nothing else. Its pods reach a recorder, or fit nowhere.
func (p prober) profile(probe ProbedPlugin) *yaml.Node {
	plugins := node.Mapping()
	for _, point := range p.points() {
		schema.Disable(plugins, point, schema.AllPlugins)
	}
	schema.Enable(plugins, schema.PointBind, schema.DefaultBinder, 0)
	if p.queueSort != nil { // the validation requires the same in all profiles
		node.Put(plugins, schema.PointQueueSort, node.Copy(p.queueSort))
	}
	for _, point := range filtering() {
		if slices.Contains(enabledAt(p.sets, point), probe.Name) {
			schema.Enable(plugins, point, probe.Name, 0)
		}
	}
	if p.api.MultiPoint {
		p.addMultiPoint(plugins, probe.Name)
	}
	profile := node.Mapping("schedulerName", node.String(probe.Profile), "plugins", plugins)
	if p.config != nil {
		node.Put(profile, "pluginConfig", node.Copy(p.config))
	}
	return profile
}

// addMultiPoint enables a plugin under multiPoint at the filtering extension points, if it is
// enabled there, and the plugins that sort the queue.
func (p prober) addMultiPoint(plugins *yaml.Node, name string) {
	schema.Disable(plugins, schema.MultiPoint, schema.AllPlugins)
	multi := slices.Contains(enabledAt(p.sets, schema.MultiPoint), name)
	if multi {
		schema.Enable(plugins, schema.MultiPoint, name, 0)
	}
	sorters := slices.DeleteFunc(p.sorters(), func(sorter string) bool { return sorter == name && multi })
	for _, sorter := range sorters {
		schema.Enable(plugins, schema.MultiPoint, sorter, 0)
	}
	for _, point := range filtering() {
		if !multi || schema.IsDisabled(p.sets, point, name) {
			continue
		}
		node.Remove(node.Get(plugins, point), "disabled")
		for _, sorter := range sorters {
			schema.Disable(plugins, point, sorter)
		}
	}
}

// sorters returns the plugins of multiPoint that may sort the queue: PrioritySort, or, if that is
// disabled, the plugins that are not in-tree.
func (p prober) sorters() []string {
	if len(enabledAt(p.sets, schema.PointQueueSort)) > 0 {
		return nil
	}
	var own []string
	for _, name := range enabledAt(p.sets, schema.MultiPoint) {
		known, inTree := schema.InTreeNamed(name)
		switch {
		case schema.IsDisabled(p.sets, schema.PointQueueSort, name):
		case inTree && known.Implements(schema.PointQueueSort, p.api.Minor):
			return []string{name}
		case !inTree && !versions.EverInTree(name):
			own = append(own, name)
		}
	}
	return own
}

// points returns the extension points of the config API in the release, without the points that all
// profiles share.
func (p prober) points() []string {
	points := slices.DeleteFunc(extensionPoints(), func(point string) bool { return point == schema.PointQueueSort })
	for _, set := range schema.PluginSets(p.sets) {
		if set.Point != schema.MultiPoint && set.Point != schema.PointQueueSort && !slices.Contains(points, set.Point) {
			points = append(points, set.Point)
		}
	}
	return points
}
