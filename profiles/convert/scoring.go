package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// scoring converts resource scoring: three plugins in v1beta1, one plugin with three strategies
// later.
func (c *profileConversion) scoring() {
	s := scoringConversion{c}
	switch old := schema.InV1beta1; {
	case c.from.Set == old && c.To.Set != old:
		s.toStrategy()
	case c.from.Set != old && c.To.Set == old:
		s.toPlugin()
	case c.To.Set != old:
		s.replaceOldScorers()
	}
}

// scoringConversion converts between the three plugins and the strategies of one.
type scoringConversion struct{ *profileConversion }

// scorer is an enabled plugin of v1beta1 with the entry that enables it. entry is nil if the plugin
// is enabled by default.
type scorer struct {
	schema.Strategy
	entry *yaml.Node
}

// toStrategy gives NodeResourcesFit the strategy of the plugin that v1beta1 enables.
func (c *scoringConversion) toStrategy() {
	working := c.selectScorer(scorers(c.sets))
	c.dropOldDisabled(working)
	for _, s := range working {
		c.setStrategy(s)
	}
	for _, s := range schema.Strategies() {
		if e := schema.ConfigOf(c.profile, s.Plugin); e != nil {
			schema.DropConfig(c.profile, e)
			c.Note(e, "the arguments of %s left out: the plugin is not enabled", s.Plugin)
		}
	}
}

// replaceOldScorers gives NodeResourcesFit the strategy for a v1beta1 plugin that a later config
// API enables, which no release accepts.
func (c *scoringConversion) replaceOldScorers() {
	for _, s := range schema.Strategies() {
		if e := schema.Entry(c.sets, "score", "enabled", s.Plugin); e != nil && !c.exists(s.Plugin) {
			configured := node.Get(schema.ConfigOf(c.profile, schema.ResourcesFit), "args", "scoringStrategy")
			if !node.IsNull(configured) || schema.Entry(c.sets, "score", "enabled", schema.ResourcesFit) != nil {
				c.Refuse(e, schema.Successor(s.Plugin), "plugin %s does not exist in %s, and %s is configured already", s.Plugin,
					c.Release, schema.ResourcesFit)
				return
			}
			c.setStrategy(scorer{s, e})
		}
		if e := schema.Entry(c.sets, "score", "disabled", s.Plugin); e != nil && !c.exists(s.Plugin) {
			schema.DropEntry(c.sets, "score", "disabled", e)
			c.Note(e, "%s is no longer disabled: %s does not have it, so the line had no effect", s.Plugin, c.Release)
		}
	}
}

// selectScorer selects one of several plugins: the one with the highest weight, and an entry before
// a default.
func (c *scoringConversion) selectScorer(working []scorer) []scorer {
	if len(working) < 2 {
		return working
	}
	c.Loss(working[1].entry, "disable one of them: add `- name: "+working[0].Plugin+"` to plugins.score.disabled",
		"%s and %s both score in v1beta1 (the first by default); %s has one plugin, NodeResourcesFit, with one strategy",
		working[0].Plugin, working[1].Plugin, c.To.Name)
	weight := func(s scorer) int { return node.Number(s.entry, "weight") }
	stays := slices.MaxFunc(working, func(a, b scorer) int { return weight(a) - weight(b) })
	if stays.entry == nil {
		stays = working[len(working)-1]
	}
	for _, s := range working {
		if s.entry != nil && s.entry != stays.entry {
			schema.DropEntry(c.sets, "score", "enabled", s.entry)
		}
	}
	if c.Lossy {
		c.Loss(stays.entry, "", "%s is kept", stays.Plugin)
	}
	return []scorer{stays}
}

// scorers returns the plugins of v1beta1 that score by resources in a profile.
func scorers(plugins *yaml.Node) []scorer {
	var working []scorer
	for _, s := range append(schema.Strategies(), schema.Strategy{Plugin: schema.ResourcesFit}) {
		e := schema.Entry(plugins, "score", "enabled", s.Plugin)
		if e != nil || s.Plugin == schema.LeastAllocated && !schema.IsDisabled(plugins, "score", s.Plugin) {
			working = append(working, scorer{s, e})
		}
	}
	return working
}

// dropOldDisabled converts the entries that disable the old plugins. Only the default among them
// had an effect: without a scorer, NodeResourcesFit has to be disabled.
func (c *scoringConversion) dropOldDisabled(working []scorer) {
	if e := schema.Entry(c.sets, "score", "disabled", schema.ResourcesFit); e != nil {
		schema.DropEntry(c.sets, "score", "disabled", e)
		c.Note(e,
			"NodeResourcesFit is no longer disabled: it does not score in v1beta1, so the line had no effect; in %s it would",
			c.To.Name)
	}
	for _, s := range schema.Strategies() {
		e := schema.Entry(c.sets, "score", "disabled", s.Plugin)
		if e == nil {
			continue
		}
		if s.Plugin == schema.LeastAllocated && len(working) == 0 {
			schema.Rename(e, schema.ResourcesFit)
			c.Note(e, "%s becomes NodeResourcesFit: it scores by resources in %s", s.Plugin, c.To.Name)
			continue
		}
		schema.DropEntry(c.sets, "score", "disabled", e)
		c.Note(e, "%s is no longer disabled: what is enabled under score in %s replaces the default NodeResourcesFit",
			s.Plugin, c.To.Name)
	}
}

// setStrategy gives NodeResourcesFit the strategy, weight and arguments of a plugin.
func (c *scoringConversion) setStrategy(s scorer) {
	if s.Plugin == schema.ResourcesFit {
		return
	}
	old := schema.ConfigOf(c.profile, s.Plugin)
	if s.entry != nil {
		schema.Rename(s.entry, schema.ResourcesFit)
		c.Note(s.entry,
			"%s becomes NodeResourcesFit with scoringStrategy %s in pluginConfig: %s does not have it; the weight is kept",
			s.Plugin, s.Name, c.Release)
	}
	if s.entry == nil && old == nil {
		return
	}
	wanted := node.Mapping("type", node.String(s.Name))
	if shape := node.Get(old, "args", "shape"); shape != nil {
		node.Put(wanted, "requestedToCapacityRatio", node.Mapping("shape", shape))
	}
	if resources := node.Get(old, "args", "resources"); resources != nil {
		node.Put(wanted, "resources", resources)
	}
	node.Put(schema.ArgsOf(c.profile, schema.ResourcesFit), "scoringStrategy", wanted)
	if old != nil {
		schema.DropConfig(c.profile, old)
		c.Note(old, "the arguments of %s become args.scoringStrategy of NodeResourcesFit", s.Plugin)
	}
}

// toPlugin enables the v1beta1 plugin for NodeResourcesFit's strategy.
func (c *scoringConversion) toPlugin() {
	wanted := schema.Strategies()[0]
	key, strategy := node.Remove(node.Get(schema.ConfigOf(c.profile, schema.ResourcesFit), "args"), "scoringStrategy")
	if name := node.Text(strategy, "type"); name != "" {
		i := slices.IndexFunc(schema.Strategies(), func(s schema.Strategy) bool { return s.Name == name })
		if i < 0 {
			c.Refuse(node.Get(strategy, "type"), "use LeastAllocated, MostAllocated or RequestedToCapacityRatio",
				"unknown scoring strategy %q", name)
			return
		}
		wanted = schema.Strategies()[i]
	}
	c.renameScorer(wanted)
	if strategy != nil {
		c.Note(key, "scoringStrategy %s becomes the plugin %s: %s has no strategies", wanted.Name, wanted.Plugin, c.To.Name)
		for _, args := range []struct {
			name string
			node *yaml.Node
		}{{"shape", node.Get(strategy, "requestedToCapacityRatio", "shape")}, {
			"resources", node.Get(strategy, "resources")}} {
			if args.node != nil && (args.name != "shape" || wanted.Plugin == schema.CapacityRatio) {
				node.Put(schema.ArgsOf(c.profile, wanted.Plugin), args.name, args.node)
			}
			for _, resource := range node.Items(args.node) { // without a weight it had 1 there
				if args.name == "resources" && node.IsZero(node.Text(resource, "weight")) {
					node.Put(resource, "weight", node.Int(1))
				}
			}
		}
		if e := schema.ConfigOf(c.profile, schema.ResourcesFit); onlyType(node.Get(e, "args")) {
			schema.DropConfig(c.profile, e)
		}
	}
}

// renameScorer replaces NodeResourcesFit under score with the old plugin, and enables the old
// plugin if NodeResourcesFit was enabled by default.
func (c *scoringConversion) renameScorer(wanted schema.Strategy) {
	e, off := schema.Entry(c.sets, "score", "enabled", schema.ResourcesFit), schema.Entry(c.sets, "score", "disabled",
		schema.ResourcesFit)
	byDefault := e == nil && !schema.IsDisabled(c.sets, "score", schema.ResourcesFit)
	switch {
	case e != nil:
		schema.Rename(e, wanted.Plugin)
		c.Note(e, "NodeResourcesFit under score becomes %s, its name in %s; the weight is kept", wanted.Plugin, c.To.Name)
	case byDefault && wanted.Plugin != schema.LeastAllocated:
		schema.Enable(c.sets, "score", wanted.Plugin, 1)
	}
	if off != nil {
		schema.Rename(off, schema.LeastAllocated)
	}
	if wanted.Plugin != schema.LeastAllocated && (e != nil || byDefault) &&
		!schema.IsDisabled(c.sets, "score", schema.LeastAllocated) {
		schema.Disable(c.sets, "score", schema.LeastAllocated)
	}
}
