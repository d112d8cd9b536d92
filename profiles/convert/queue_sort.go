package convert

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// alignQueueSort writes the same queueSort into all profiles if the same plugin sorts the queue in
// each. Up to v1beta2, releases from 1.22 on compare the profiles' plugins; other releases compare
// the lines (validateCommonQueueSort in pkg/scheduler/apis/config/validation/validation.go).
func (c *conversion) alignQueueSort() {
	const point = schema.PointQueueSort
	if c.from.MultiPoint || !c.To.MultiPoint && c.Rules.WritesDefaultPlugins {
		return
	}
	var sorters, lines []string
	all := c.doc.Profiles()
	for _, p := range all {
		names, _, unknown := schema.PluginsAt(node.Get(p, "plugins"), point, c.To)
		if len(names) != 1 || len(unknown) > 0 {
			return // not valid, or unknown
		}
		sorters, lines = append(sorters, names[0]), append(lines, queueSortLines(p))
	}
	if len(slices.Compact(sorters)) != 1 || len(slices.Compact(lines)) == 1 {
		return
	}
	for _, p := range all {
		plugins := node.Child(p, "plugins")
		node.Remove(plugins, point)
		schema.Disable(plugins, point, schema.AllPlugins)
		schema.Enable(plugins, point, sorters[0], 0)
	}
	c.Note(all[0], "queueSort: %s is written out in each profile, where %s expects the same lines", sorters[0], c.Release)
}

// queueSortLines returns the plugin set of queueSort as text, to compare it.
func queueSortLines(profile *yaml.Node) string {
	var set any
	if n := node.Get(profile, "plugins", schema.PointQueueSort); n != nil && n.Decode(&set) != nil {
		return ""
	}
	return fmt.Sprint(set)
}
