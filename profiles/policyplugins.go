package profiles

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// plugins returns the plugin sets of v1beta1 that say what the Policy does: what
// differs from the defaults.
func (p *policyReading) plugins() *yaml.Node {
	plugins := mapping()
	for _, known := range inTreePlugins() {
		filters, scores := find(p.filters, known.name), find(p.scores, known.name)
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
	for _, set := range pluginSets(plugins) {
		for _, e := range items(get(set.node, "disabled")) {
			p.generated[e] = true
		}
	}
	return plugins
}

func find(wishes []wish, name string) *wish {
	i := slices.IndexFunc(wishes, func(w wish) bool { return w.plugin == name })
	if i < 0 {
		return nil
	}
	return &wishes[i]
}

// place settles one plugin at one extension point. What is named and lost later
// stands there even if it is a default, so that the loss is told.
func (p *policyReading) place(plugins *yaml.Node, known inTree, point string, wanted *wish, weight int) {
	byDefault := isDefault(p.from, point, known.name)
	switch {
	case wanted == nil && byDefault:
		disable(plugins, point, known.name)
	case wanted == nil || !known.takesPart(point, p.from.minor):
	case !byDefault:
		p.enable(plugins, point, *wanted, weight)
	case weight > 0 && (weight != known.weight(p.from) || known.name == nodePreferAvoidPods && wanted.source != nil):
		if known.name == nodePreferAvoidPods {
			disable(plugins, point, known.name) // or it would be told as a default that is lost
		}
		p.enable(plugins, point, *wanted, weight)
	}
}

// enable adds a plugin at the place of the line that asks for it, with its comments.
func (p *policyReading) enable(plugins *yaml.Node, point string, wanted wish, weight int) {
	enable(plugins, point, wanted.plugin, weight)
	all := items(get(plugins, point, "enabled"))
	added := all[len(all)-1]
	if source := wanted.source; source != nil {
		name, from := get(added, "name"), get(source, "name")
		added.Line, added.Column, added.HeadComment = source.Line, source.Column, source.HeadComment
		name.Line, name.Column, name.LineComment = from.Line, from.Column, from.LineComment
		if key := source.Content[0]; added.HeadComment == "" {
			added.HeadComment = key.HeadComment
		}
	}
}

// pluginConfig writes the arguments that the Policy gives the plugins.
func (p *policyReading) pluginConfig(profile, hardWeight *yaml.Node) {
	for _, plugin := range []string{nodeLabel, serviceAffinity} {
		for _, field := range []string{"presentLabels", "absentLabels", "presentLabelsPreference", "absentLabelsPreference", "affinityLabels", "antiAffinityLabelsPreference"} {
			for _, label := range p.labels[plugin][field] {
				all := list(configArgs(profile, plugin), field)
				all.Content = append(all.Content, str(label))
			}
		}
	}
	if p.ratio != nil {
		args := configArgs(profile, capacityRatio)
		for _, field := range []string{"shape", "resources"} {
			if given := get(p.ratio, field); given != nil {
				put(args, field, given)
			}
		}
	}
	if p.listed {
		put(configArgs(profile, podTopologySpread), "defaultingType", str("List"))
	}
	if number(hardWeight) == 0 {
		return
	}
	if find(p.scores, interPodAffinity) == nil {
		p.note(hardWeight, "hardPodAffinitySymmetricWeight left out: without InterPodAffinityPriority it has no effect")
		return
	}
	put(configArgs(profile, interPodAffinity), "hardPodAffinityWeight", hardWeight)
}
