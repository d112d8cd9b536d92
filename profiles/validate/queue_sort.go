package validate

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// queueSort checks that a profile sorts the queue as the first one does, with the same arguments:
// all profiles share one queue (validateCommonQueueSort in
// pkg/scheduler/apis/config/validation/validation.go, cfgValidator in
// pkg/scheduler/profile/profile.go).
func (v *validator) queueSort(first, p *yaml.Node) {
	const point = schema.PointQueueSort
	at := cmp.Or(node.Get(p, "plugins", point), node.Get(first, "plugins", point), p)
	if !slices.Equal(v.sorters(first), v.sorters(p)) {
		v.add(at, "write the same queueSort, with the same enabled and disabled plugins, in every profile",
			"queueSort differs from the first profile")
		return
	}
	sorter, open := v.sorter(first)
	other, alsoOpen := v.sorter(p)
	switch {
	case open || alsoOpen:
	case sorter != other:
		v.add(at, "use the same queueSort plugin in every profile",
			"the queue is sorted by %s, but in the first profile by %s", other, sorter)
	case !reflect.DeepEqual(argsOf(first, sorter), argsOf(p, sorter)):
		v.add(cmp.Or(schema.ConfigOf(p, sorter), schema.ConfigOf(first, sorter)),
			"write the same args of "+sorter+" in every profile",
			"the arguments of %s, which sorts the queue, differ from the first profile", sorter)
	}
}

// sorters returns the queueSort plugin set as the release's validation compares it: from v1beta3 on
// and up to 1.21 as it is written, otherwise merged with the defaults.
func (v *validator) sorters(p *yaml.Node) []string {
	const point = schema.PointQueueSort
	plugins := node.Get(p, "plugins")
	entry := func(name string) string {
		return fmt.Sprint(name, " ", node.Number(schema.Entry(plugins, point, "enabled", name), "weight"))
	}
	var set []string
	if !v.api.MultiPoint && v.Rules.WritesDefaultPlugins {
		for _, name := range schema.MergedPlugins(plugins, point, v.api) {
			set = append(set, entry(name))
		}
		return set
	}
	if !v.Rules.WritesDefaultPlugins && !node.IsNull(plugins, point) {
		set = append(set, "written") // a missing set differs from an empty one
	}
	for _, e := range node.Items(plugins, point, "enabled") {
		set = append(set, entry(node.Text(e, "name")))
	}
	for _, name := range schema.DisabledNames(plugins, point) {
		set = append(set, "not "+name)
	}
	return set
}

// sorter returns the plugin that sorts the queue. open is set if plugins of multiPoint, whose
// extension points are unknown, may sort it.
func (v *validator) sorter(p *yaml.Node) (name string, open bool) {
	names, _, unknown := schema.PluginsAt(node.Get(p, "plugins"), schema.PointQueueSort, v.api)
	if len(names) != 1 {
		return "", true // reported by checkStartup
	}
	return names[0], len(unknown) > 0
}

// argsOf returns a plugin's arguments as plain data, or nil.
func argsOf(profile *yaml.Node, plugin string) any {
	var args any
	given := node.Get(schema.ConfigOf(profile, plugin), "args")
	if given == nil || given.Decode(&args) != nil {
		return nil
	}
	return args
}
