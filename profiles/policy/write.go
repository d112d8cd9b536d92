package policy

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// CopyFields copies the predicates and priorities of a Policy.
func CopyFields(policy, source *yaml.Node) {
	for _, name := range []string{"predicates", "priorities", "hardPodAffinitySymmetricWeight",
		"alwaysCheckAllPredicates"} {
		if key, value := node.Lookup(source, name); key != nil {
			policy.Content = append(policy.Content, key, value)
		}
	}
}

// WriteExtenders renames the fields of extenders to their names in a Policy.
func WriteExtenders(extenders *yaml.Node) {
	for _, e := range node.Items(extenders) {
		if key, _ := node.Lookup(e, "enableHTTPS"); key != nil {
			key.Value = "enableHttps"
		}
		if _, value := node.Lookup(e, "httpTimeout"); !node.IsNull(value) {
			node.Put(e, "httpTimeout", node.Int(int(schema.ReadTimeout(value))))
		}
	}
}

// Writer writes one v1beta1 profile as predicates and priorities. It leaves out settings that a
// Policy cannot express; a comparison of [Semantics] finds them.
type Writer struct {
	Profile *yaml.Node
	API     schema.API
}

// Write adds the differences from the defaults to a Policy.
func (s Writer) Write(policy *yaml.Node) {
	filters := schema.EffectivePlugins(node.Get(s.Profile, "plugins"), "filter", s.API)
	scores := schema.EffectivePlugins(node.Get(s.Profile, "plugins"), "score", s.API)
	if !maps.Equal(filters, schema.EffectivePlugins(nil, "filter", s.API)) {
		node.Put(policy, "predicates", node.Sequence(s.predicates(filters)))
	}
	if spreads := s.args(schema.PodTopologySpread); len(spreads) > 0 ||
		!maps.Equal(scores, schema.EffectivePlugins(nil, "score", s.API)) {
		node.Put(policy, "priorities", node.Sequence(s.priorities(scores)))
	}
	if weight := node.Get(schema.ConfigOf(s.Profile, schema.InterPodAffinity), "args",
		"hardPodAffinityWeight"); node.Number(weight) > 1 {
		node.Put(policy, "hardPodAffinitySymmetricWeight", node.Int(node.Number(weight)))
	}
}

// predicates returns the predicates for a set of filters, preferring predicates that cover most
// filters.
func (s Writer) predicates(filters map[string]int) []*yaml.Node {
	var said []*yaml.Node
	covered := map[string]bool{}
	for _, known := range predicates() {
		custom := slices.Contains(known.plugins, schema.NodeLabel) || slices.Contains(known.plugins, schema.ServiceAffinity)
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
		said = append(said, node.Mapping("name", node.String(known.name)))
	}
	custom := func(name, kind string, argument *yaml.Node) {
		said = append(said, node.Mapping("name", node.String(name), "argument", node.Mapping(kind, argument)))
	}
	if _, wanted := filters[schema.ServiceAffinity]; wanted {
		custom(schema.ServiceAffinity+"-affinityLabels", "serviceAffinity", node.Mapping("labels",
			node.Copy(node.Get(schema.ConfigOf(s.Profile, schema.ServiceAffinity), "args", "affinityLabels"))))
	}
	if _, wanted := filters[schema.NodeLabel]; wanted {
		for _, field := range []struct {
			name    string
			present bool
		}{{"presentLabels", true}, {"absentLabels", false}} {
			if labels := node.Get(schema.ConfigOf(s.Profile, schema.NodeLabel), "args",
				field.name); len(node.Items(labels)) > 0 {
				custom("NodeLabel-"+field.name, "labelsPresence",
					node.Mapping("labels", node.Copy(labels), "presence", node.Bool(field.present)))
			}
		}
	}
	return said
}

// priorities returns the priorities for scoring plugins and their weights.
func (s Writer) priorities(scores map[string]int) []*yaml.Node {
	var said []*yaml.Node
	add := func(name string, weight int, argument *yaml.Node) {
		p := node.Mapping("name", node.String(name), "weight", node.Int(weight))
		if argument != nil {
			node.Put(p, "argument", argument)
		}
		said = append(said, p)
	}
	listed := node.Text(schema.ConfigOf(s.Profile, schema.PodTopologySpread), "args", "defaultingType") == "List"
	for _, known := range priorities() {
		weight, wanted := scores[known.plugin]
		spreads := known.plugin == schema.PodTopologySpread
		switch {
		case !wanted, spreads && known.name != selectorSpreadPriority && known.name != evenPodsSpreadPriority:
		case spreads && listed && known.name == selectorSpreadPriority:
		default:
			add(known.name, weight, nil)
		}
	}
	if weight, wanted := scores[schema.CapacityRatio]; wanted {
		ratio := node.Mapping()
		for _, field := range []string{"shape", "resources"} {
			if given := node.Get(schema.ConfigOf(s.Profile, schema.CapacityRatio), "args", field); given != nil {
				node.Put(ratio, field, node.Copy(given))
			}
		}
		// The release ignores the argument of a priority with the plugin's name.
		add(schema.CapacityRatio+"-shape", weight, node.Mapping("requestedToCapacityRatioArguments", ratio))
	}
	for _, field := range []struct {
		plugin, name string
		argument     func(label *yaml.Node) *yaml.Node
	}{
		{schema.NodeLabel, "presentLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return node.Mapping("labelPreference", node.Mapping("label", l, "presence", node.Bool(true)))
		}},
		{schema.NodeLabel, "absentLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return node.Mapping("labelPreference", node.Mapping("label", l, "presence", node.Bool(false)))
		}},
		{schema.ServiceAffinity, "antiAffinityLabelsPreference", func(l *yaml.Node) *yaml.Node {
			return node.Mapping("serviceAntiAffinity", node.Mapping("label", l))
		}},
	} {
		labels := node.Items(schema.ConfigOf(s.Profile, field.plugin), "args", field.name)
		for _, label := range labels {
			add(field.plugin+"-"+field.name+"-"+node.Text(label), s.share(field.plugin, scores),
				field.argument(node.String(node.Text(label))))
		}
	}
	return said
}

// share returns one label's weight: a plugin's weight is the sum over its labels.
func (s Writer) share(plugin string, scores map[string]int) int {
	count := 0
	for _, field := range []string{"presentLabelsPreference", "absentLabelsPreference", "antiAffinityLabelsPreference"} {
		count += len(node.Items(schema.ConfigOf(s.Profile, plugin), "args", field))
	}
	return max(1, scores[plugin]/max(1, count))
}
