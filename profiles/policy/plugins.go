package policy

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// plugins returns the plugin sets of v1beta1 that are equivalent to the Policy: the differences
// from the defaults.
func (p *reader) plugins() *yaml.Node {
	plugins := node.Mapping()
	for _, known := range schema.InTreePlugins() {
		filters, scores := find(p.filters, known.Name), find(p.scores, known.Name)
		for _, point := range []string{"preFilter", "filter", "reserve", "preBind"} {
			p.place(plugins, known, point, filters, 0)
		}
		p.place(plugins, known, "preScore", scores, 0)
		if scores == nil {
			p.place(plugins, known, "score", nil, 0)
		} else {
			p.place(plugins, known, "score", scores, scores.weight)
		}
	}
	for _, set := range schema.PluginSets(plugins) {
		for _, e := range node.Items(set.Node, "disabled") {
			p.Generated[e] = true
		}
	}
	return plugins
}

func find(wishes []activePlugin, name string) *activePlugin {
	i := slices.IndexFunc(wishes, func(w activePlugin) bool { return w.plugin == name })
	if i < 0 {
		return nil
	}
	return &wishes[i]
}

// place enables or disables one plugin at one extension point. A plugin that the conversion drops
// later is enabled even if it is a default, so that the loss is reported.
func (p *reader) place(plugins *yaml.Node, known schema.InTree, point string, wanted *activePlugin, weight int) {
	byDefault := schema.IsDefault(p.from, point, known.Name)
	switch {
	case wanted == nil && byDefault:
		schema.Disable(plugins, point, known.Name)
	case wanted == nil || !known.Implements(point, p.from.Minor):
	case !byDefault:
		p.enable(plugins, point, *wanted, weight)
	case weight > 0 && (weight != known.Weight(p.from) || known.Name == schema.NodePreferAvoidPods &&
		wanted.source != nil):
		if known.Name == schema.NodePreferAvoidPods {
			schema.Disable(plugins, point, known.Name) // otherwise it would be reported as a lost default
		}
		p.enable(plugins, point, *wanted, weight)
	}
}

// enable adds a plugin at its source's position, with its comments.
func (p *reader) enable(plugins *yaml.Node, point string, wanted activePlugin, weight int) {
	schema.Enable(plugins, point, wanted.plugin, weight)
	all := node.Items(plugins, point, "enabled")
	added := all[len(all)-1]
	if source := wanted.source; source != nil {
		name, from := node.Get(added, "name"), node.Get(source, "name")
		added.Line, added.Column, added.HeadComment = source.Line, source.Column, source.HeadComment
		name.Line, name.Column, name.LineComment = from.Line, from.Column, from.LineComment
		if key := source.Content[0]; added.HeadComment == "" {
			added.HeadComment = key.HeadComment
		}
	}
}

// pluginConfig writes the Policy's plugin arguments.
func (p *reader) pluginConfig(profile, hardWeight *yaml.Node) {
	for _, plugin := range []string{schema.NodeLabel, schema.ServiceAffinity} {
		for _, field := range []string{"presentLabels", "absentLabels", "presentLabelsPreference", "absentLabelsPreference",
			"affinityLabels", "antiAffinityLabelsPreference"} {
			for _, label := range p.labels[plugin][field] {
				all := node.List(schema.ArgsOf(profile, plugin), field)
				all.Content = append(all.Content, node.String(label))
			}
		}
	}
	if p.ratio != nil {
		args := schema.ArgsOf(profile, schema.CapacityRatio)
		for _, field := range []string{"shape", "resources"} {
			if given := node.Get(p.ratio, field); given != nil {
				node.Put(args, field, given)
			}
		}
	}
	if p.listed {
		node.Put(schema.ArgsOf(profile, schema.PodTopologySpread), "defaultingType", node.String("List"))
	}
	if node.Number(hardWeight) == 0 {
		return
	}
	if find(p.scores, schema.InterPodAffinity) == nil {
		p.Note(hardWeight, "hardPodAffinitySymmetricWeight left out: without InterPodAffinityPriority it has no effect")
		return
	}
	node.Put(schema.ArgsOf(profile, schema.InterPodAffinity), "hardPodAffinityWeight", hardWeight)
}
