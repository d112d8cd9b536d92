package profiles

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// saying says one profile of v1beta1 as predicates and priorities. What it cannot
// say it leaves out; comparing meanings tells.
type saying struct {
	profile *yaml.Node
	api     api
}

// write adds to a Policy what differs from the defaults.
func (s saying) write(policy *yaml.Node) {
	filters := atWork(get(s.profile, "plugins"), "filter", s.api)
	scores := atWork(get(s.profile, "plugins"), "score", s.api)
	if !maps.Equal(filters, atWork(nil, "filter", s.api)) {
		put(policy, "predicates", sequence(s.predicates(filters)))
	}
	if spreads := s.args(podTopologySpread); len(spreads) > 0 || !maps.Equal(scores, atWork(nil, "score", s.api)) {
		put(policy, "priorities", sequence(s.priorities(scores)))
	}
	if weight := get(config(s.profile, interPodAffinity), "args", "hardPodAffinityWeight"); number(weight) > 1 {
		put(policy, "hardPodAffinitySymmetricWeight", integer(number(weight)))
	}
}

func sequence(content []*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: content}
}

// atWork returns the plugins of an extension point and their weights; 0 where they
// do not score.
func atWork(plugins *yaml.Node, point string, a api) map[string]int {
	found := map[string]int{}
	for _, name := range merged(plugins, point, a) {
		weight := 0
		if point == "score" {
			known, _ := inTreeNamed(name)
			weight = known.weight(a)
			if e := entry(plugins, point, "enabled", name); e != nil {
				weight = max(1, number(get(e, "weight")))
			}
		}
		found[name] = weight
	}
	return found
}

// predicates names the predicates for a set of filters; of several that would do,
// the one for most.
func (s saying) predicates(filters map[string]int) []*yaml.Node {
	var said []*yaml.Node
	covered := map[string]bool{}
	for _, known := range predicates() {
		custom := slices.Contains(known.plugins, nodeLabel) || slices.Contains(known.plugins, serviceAffinity)
		has := !custom
		for _, plugin := range known.plugins {
			_, wanted := filters[plugin]
			has = has && wanted && !covered[plugin]
		}
		if !has {
			continue
		}
		for _, plugin := range known.plugins {
			covered[plugin] = true
		}
		said = append(said, mapping("name", str(known.name)))
	}
	custom := func(name, kind string, argument *yaml.Node) {
		said = append(said, mapping("name", str(name), "argument", mapping(kind, argument)))
	}
	if _, wanted := filters[serviceAffinity]; wanted {
		custom(serviceAffinity+"-affinityLabels", "serviceAffinity", mapping("labels", copied(get(config(s.profile, serviceAffinity), "args", "affinityLabels"))))
	}
	if _, wanted := filters[nodeLabel]; wanted {
		for _, field := range []struct {
			name    string
			present bool
		}{{"presentLabels", true}, {"absentLabels", false}} {
			if labels := get(config(s.profile, nodeLabel), "args", field.name); len(items(labels)) > 0 {
				custom("NodeLabel-"+field.name, "labelsPresence", mapping("labels", copied(labels), "presence", boolean(field.present)))
			}
		}
	}
	return said
}

// priorities names the priorities for scoring plugins and their weights.
func (s saying) priorities(scores map[string]int) []*yaml.Node {
	var said []*yaml.Node
	add := func(name string, weight int, argument *yaml.Node) {
		p := mapping("name", str(name), "weight", integer(weight))
		if argument != nil {
			put(p, "argument", argument)
		}
		said = append(said, p)
	}
	listed := text(get(config(s.profile, podTopologySpread), "args", "defaultingType")) == "List"
	for _, known := range priorities() {
		weight, wanted := scores[known.plugin]
		spreads := known.plugin == podTopologySpread
		switch {
		case !wanted, spreads && known.name != selectorSpreadPriority && known.name != evenPodsSpreadPriority:
		case spreads && listed && known.name == selectorSpreadPriority:
		default:
			add(known.name, weight, nil)
		}
	}
	if weight, wanted := scores[capacityRatio]; wanted {
		ratio := mapping()
		for _, field := range []string{"shape", "resources"} {
			if given := get(config(s.profile, capacityRatio), "args", field); given != nil {
				put(ratio, field, copied(given))
			}
		}
		// By the plugin's own name the release would take it for known, and pass over
		// its argument.
		add(capacityRatio+"-shape", weight, mapping("requestedToCapacityRatioArguments", ratio))
	}
	for _, field := range []struct {
		plugin, name string
		argument     func(label *yaml.Node) *yaml.Node
	}{
		{nodeLabel, "presentLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return mapping("labelPreference", mapping("label", l, "presence", boolean(true)))
		}},
		{nodeLabel, "absentLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return mapping("labelPreference", mapping("label", l, "presence", boolean(false)))
		}},
		{serviceAffinity, "antiAffinityLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return mapping("serviceAntiAffinity", mapping("label", l))
		}},
	} {
		labels := items(get(config(s.profile, field.plugin), "args", field.name))
		for _, label := range labels {
			add(field.plugin+"-"+field.name+"-"+text(label), s.share(field.plugin, scores), field.argument(str(text(label))))
		}
	}
	return said
}

// share is the weight of one label: a plugin's is that of all its labels together.
func (s saying) share(plugin string, scores map[string]int) int {
	count := 0
	for _, field := range []string{"presentLabelsPreference", "absentLabelsPreference", "antiAffinityLabelsPreference"} {
		count += len(items(get(config(s.profile, plugin), "args", field)))
	}
	return max(1, scores[plugin]/max(1, count))
}

func copied(n *yaml.Node) *yaml.Node {
	if n == nil {
		return sequence(nil)
	}
	clone := *n
	clone.Content = nil
	for _, c := range n.Content {
		clone.Content = append(clone.Content, copied(c))
	}
	return &clone
}

// args returns the arguments of a plugin as plain data, without those that are the
// defaults (pkg/scheduler/apis/config/v1beta1/defaults.go).
func (s saying) args(plugin string) map[string]any {
	found := map[string]any{}
	given := get(config(s.profile, plugin), "args")
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

// meaning is what a profile comes to.
type meaning struct {
	plugins map[string]map[string]int
	args    map[string]map[string]any
}

func meaningOf(profile *yaml.Node, a api) meaning {
	s, m := saying{profile: profile, api: a}, meaning{map[string]map[string]int{}, map[string]map[string]any{}}
	for _, point := range pointNames() {
		m.plugins[point] = atWork(get(profile, "plugins"), point, a)
		for name := range m.plugins[point] {
			if args := s.args(name); len(args) > 0 {
				m.args[name] = args
			}
		}
	}
	return m
}

// without tells what of a meaning another does not have, or has beside it.
func (m meaning) without(other meaning) []string {
	var lost []string
	for _, point := range pointNames() {
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
				lost = append(lost, fmt.Sprintf("that plugin %s is not enabled at %s", name, point))
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
			lost = append(lost, "that plugin "+name+" has no arguments")
		}
	}
	return lost
}
