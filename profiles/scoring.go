package profiles

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// strategy pairs a plugin of v1beta1 with the strategy of NodeResourcesFit that
// took its place in v1beta2 (types_pluginargs.go, ScoringStrategyType).
type strategy struct{ plugin, name string }

func strategies() []strategy {
	return []strategy{
		{leastAllocated, "LeastAllocated"},
		{mostAllocated, "MostAllocated"},
		{capacityRatio, "RequestedToCapacityRatio"},
	}
}

// scoring carries how nodes are scored by their resources: three plugins in
// v1beta1, one with three strategies after.
func (c *conversion) scoring(p, plugins *yaml.Node) {
	switch old := inV1beta1; {
	case c.from.set == old && c.to.set != old:
		c.intoStrategy(p, plugins)
	case c.from.set != old && c.to.set == old:
		c.intoPlugin(p, plugins)
	}
}

// scorer is a plugin of v1beta1 that is at work, with the line that enables it;
// nil where it is one by default.
type scorer struct {
	strategy
	entry *yaml.Node
}

// intoStrategy makes NodeResourcesFit score the way the plugin did that v1beta1
// has at work.
func (c *conversion) intoStrategy(p, plugins *yaml.Node) {
	working := c.oneScorer(plugins, scorers(plugins))
	c.dropOldDisabled(plugins, working)
	for _, s := range working {
		c.takeStrategy(p, s)
	}
	for _, s := range strategies() {
		if e := config(p, s.plugin); e != nil {
			dropConfig(p, e)
			c.note(e, "the arguments of %s left out: the plugin is not enabled", s.plugin)
		}
	}
}

// oneScorer settles which of several stays: the
// heaviest, and one that is enabled by name before one that is a default.
func (c *conversion) oneScorer(plugins *yaml.Node, working []scorer) []scorer {
	if len(working) < 2 {
		return working
	}
	c.loss(working[1].entry, "disable the one that is not meant: add `- name: "+working[0].plugin+"` to plugins.score.disabled",
		"%s and %s both score in v1beta1 (the first is a default unless disabled); in %s that is one plugin, NodeResourcesFit, with one strategy",
		working[0].plugin, working[1].plugin, c.to.name)
	weight := func(s scorer) int { return number(get(s.entry, "weight")) }
	stays := slices.MaxFunc(working, func(a, b scorer) int { return weight(a) - weight(b) })
	if stays.entry == nil {
		stays = working[len(working)-1]
	}
	for _, s := range working {
		if s.entry != nil && s.entry != stays.entry {
			drop(plugins, "score", "enabled", s.entry)
		}
	}
	if c.lossy {
		c.loss(stays.entry, "", "%s is the one that stays", stays.plugin)
	}
	return []scorer{stays}
}

// scorers returns what scores by resources in a profile of v1beta1.
func scorers(plugins *yaml.Node) []scorer {
	var working []scorer
	for _, s := range append(strategies(), strategy{resourcesFit, ""}) {
		e := entry(plugins, "score", "enabled", s.plugin)
		if e != nil || s.plugin == leastAllocated && !disabled(plugins, "score", s.plugin) {
			working = append(working, scorer{s, e})
		}
	}
	return working
}

// dropOldDisabled settles the lines that disable the old plugins. Only the
// default among them meant something: without any scorer it now has to disable
// NodeResourcesFit.
func (c *conversion) dropOldDisabled(plugins *yaml.Node, working []scorer) {
	if e := entry(plugins, "score", "disabled", resourcesFit); e != nil {
		drop(plugins, "score", "disabled", e)
		c.note(e, "NodeResourcesFit need not be disabled: it does not score in v1beta1, so the line had no effect; in %s it would have one", c.to.name)
	}
	for _, s := range strategies() {
		e := entry(plugins, "score", "disabled", s.plugin)
		if e == nil {
			continue
		}
		if s.plugin == leastAllocated && len(working) == 0 {
			rename(e, resourcesFit)
			c.note(e, "%s becomes NodeResourcesFit: it scores by resources in %s", s.plugin, c.to.name)
			continue
		}
		drop(plugins, "score", "disabled", e)
		c.note(e, "%s need not be disabled: what is enabled under score in %s takes the place of the default NodeResourcesFit", s.plugin, c.to.name)
	}
}

// takeStrategy gives NodeResourcesFit the strategy, weight and arguments of a
// plugin.
func (c *conversion) takeStrategy(p *yaml.Node, s scorer) {
	if s.plugin == resourcesFit {
		return
	}
	old := config(p, s.plugin)
	if s.entry != nil {
		rename(s.entry, resourcesFit)
		c.note(s.entry, "%s becomes NodeResourcesFit with scoringStrategy %s in pluginConfig: %s has no plugin of the old name; the weight stays", s.plugin, s.name, c.release)
	}
	if s.entry == nil && old == nil {
		return
	}
	wanted := mapping("type", str(s.name))
	if shape := get(old, "args", "shape"); shape != nil {
		put(wanted, "requestedToCapacityRatio", mapping("shape", shape))
	}
	if resources := get(old, "args", "resources"); resources != nil {
		put(wanted, "resources", resources)
	}
	put(configArgs(p, resourcesFit), "scoringStrategy", wanted)
	if old != nil {
		dropConfig(p, old)
		c.note(old, "the arguments of %s become args.scoringStrategy of NodeResourcesFit", s.plugin)
	}
}

// intoPlugin makes the plugin of v1beta1 score the way NodeResourcesFit was told
// to.
func (c *conversion) intoPlugin(p, plugins *yaml.Node) {
	wanted := strategies()[0]
	key, told := remove(get(config(p, resourcesFit), "args"), "scoringStrategy")
	if name := text(get(told, "type")); name != "" {
		i := slices.IndexFunc(strategies(), func(s strategy) bool { return s.name == name })
		if i < 0 {
			c.refuse(get(told, "type"), "use LeastAllocated, MostAllocated or RequestedToCapacityRatio", "scoring strategy %q is not known", name)
			return
		}
		wanted = strategies()[i]
	}
	c.renameScorer(plugins, wanted)
	if told != nil {
		c.note(key, "scoringStrategy %s becomes the plugin %s: %s has no strategies", wanted.name, wanted.plugin, c.to.name)
		for _, args := range []struct {
			name string
			node *yaml.Node
		}{{"shape", get(told, "requestedToCapacityRatio", "shape")}, {"resources", get(told, "resources")}} {
			if args.node != nil && (args.name != "shape" || wanted.plugin == capacityRatio) {
				put(configArgs(p, wanted.plugin), args.name, args.node)
			}
			for _, resource := range items(args.node) { // without a weight it had 1 there
				if args.name == "resources" && zero(text(get(resource, "weight"))) {
					put(resource, "weight", integer(1))
				}
			}
		}
		if e := config(p, resourcesFit); onlyType(get(e, "args")) {
			dropConfig(p, e)
		}
	}
}

// renameScorer puts the old plugin's name where NodeResourcesFit stands under
// score, and enables it where NodeResourcesFit was at work by default.
func (c *conversion) renameScorer(plugins *yaml.Node, wanted strategy) {
	e, off := entry(plugins, "score", "enabled", resourcesFit), entry(plugins, "score", "disabled", resourcesFit)
	byDefault := e == nil && !disabled(plugins, "score", resourcesFit)
	switch {
	case e != nil:
		rename(e, wanted.plugin)
		c.note(e, "NodeResourcesFit under score becomes %s, its name in %s; the weight stays", wanted.plugin, c.to.name)
	case byDefault && wanted.plugin != leastAllocated:
		enable(plugins, "score", wanted.plugin, 1)
	}
	if off != nil {
		rename(off, leastAllocated)
	}
	if wanted.plugin != leastAllocated && (e != nil || byDefault) && !disabled(plugins, "score", leastAllocated) {
		disable(plugins, "score", leastAllocated)
	}
}

// onlyType says whether arguments hold nothing but what kind they are.
func onlyType(args *yaml.Node) bool {
	if !isMapping(args) {
		return isNull(args)
	}
	for i := 0; i < len(args.Content); i += 2 {
		if name := args.Content[i].Value; name != "apiVersion" && name != "kind" {
			return false
		}
	}
	return true
}

// pluginArgs writes the target's apiVersion into typed arguments and takes out
// what it does not have.
func (c *conversion) pluginArgs(p *yaml.Node) {
	for _, e := range slices.Clone(items(get(p, "pluginConfig"))) {
		name, given := text(get(e, "name")), get(e, "args")
		known, ok := argsOf(name)
		if !ok || !isMapping(given) || slices.Contains(c.plugins, name) {
			continue
		}
		if !known.in(c.to) {
			dropConfig(p, e)
			c.loss(e, "leave the entry out", "plugin %s takes no arguments in %s", name, c.release)
			continue
		}
		if v := get(given, "apiVersion"); v != nil {
			v.Value = c.to.version()
		}
		c.fit(given, known.object(), "args of "+name)
	}
}
