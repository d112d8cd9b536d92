package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// args returns a plugin's arguments as plain data, without default values
// (pkg/scheduler/apis/config/v1beta1/defaults.go).
func (s Writer) args(plugin string) map[string]any {
	found := map[string]any{}
	given := node.Get(schema.ConfigOf(s.Profile, plugin), "args")
	if given == nil || given.Decode(&found) != nil {
		return nil
	}
	delete(found, "apiVersion")
	delete(found, "kind")
	even := []any{map[string]any{"name": "cpu", "weight": 1}, map[string]any{"name": "memory", "weight": 1}}
	for name, value := range map[string]any{"defaultingType": "System", "hardPodAffinityWeight": 1, "resources": even} {
		if reflect.DeepEqual(found[name], value) {
			delete(found, name)
		}
	}
	return found
}

// Semantics is a profile's effect: its effective plugins with weights and arguments.
type Semantics struct {
	plugins map[string]map[string]int
	args    map[string]map[string]any
}

// SemanticsOf returns the effect of a profile that is written in config API a.
func SemanticsOf(profile *yaml.Node, a schema.API) Semantics {
	s, m := Writer{Profile: profile, API: a}, Semantics{map[string]map[string]int{}, map[string]map[string]any{}}
	for _, point := range schema.PointNames() {
		m.plugins[point] = schema.EffectivePlugins(node.Get(profile, "plugins"), point, a)
		for name := range m.plugins[point] {
			if args := s.args(name); len(args) > 0 {
				m.args[name] = args
			}
		}
	}
	return m
}

// Differences describes how another profile differs.
func (m Semantics) Differences(other Semantics) []string {
	var lost []string
	for _, point := range schema.PointNames() {
		for _, name := range slices.Sorted(maps.Keys(m.plugins[point])) {
			weight, has := other.plugins[point][name]
			switch {
			case !has:
				lost = append(lost, fmt.Sprintf("plugin %s at %s", name, point))
			case weight != m.plugins[point][name]:
				lost = append(lost, fmt.Sprintf("the weight %d of plugin %s", m.plugins[point][name], name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(other.plugins[point])) {
			if _, has := m.plugins[point][name]; !has {
				lost = append(lost, fmt.Sprintf("plugin %s disabled at %s", name, point))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.args)) {
		if !reflect.DeepEqual(m.args[name], other.args[name]) {
			lost = append(lost, "the arguments of plugin "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(other.args)) {
		if _, has := m.args[name]; !has {
			lost = append(lost, "plugin "+name+" without arguments")
		}
	}
	return lost
}
