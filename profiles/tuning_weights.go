package profiles

import (
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// weight returns a plugin's weight, 0 if it does not score.
func (t *Tunable) weight(plugin string) int {
	plugins := node.Get(t.profile, "plugins")
	if e := schema.Entry(plugins, "score", "enabled", plugin); e != nil {
		return max(1, node.Number(e, "weight"))
	}
	if schema.IsDisabled(plugins, "score", plugin) {
		return 0
	}
	if e := schema.Entry(plugins, schema.MultiPoint, "enabled", plugin); e != nil {
		return max(1, node.Number(e, "weight"))
	}
	if schema.IsDisabled(plugins, schema.MultiPoint, plugin) {
		return 0
	}
	known, _ := schema.InTreeNamed(plugin)
	return known.Weight(t.api)
}

// writeDefaultWeights writes the default weights of a release where v1 has others. A preset means
// the defaults of the release.
func (t *Tunable) writeDefaultWeights(release versions.Release) {
	read, _ := schema.APINamed(strings.TrimPrefix(release.Rules().Render, schema.ConfigGroup+"/"))
	for _, p := range schema.InTreePlugins() {
		given := schema.Entry(node.Get(t.profile, "plugins"), "score", "enabled", p.Name)
		if weight := p.Weight(read); given == nil && t.weight(p.Name) > 0 && weight != t.weight(p.Name) {
			t.setWeight(p.Name, weight)
		}
	}
}

func (t *Tunable) setWeight(plugin string, weight int) {
	plugins := node.Child(t.profile, "plugins")
	for _, in := range []string{"enabled", "disabled"} {
		schema.DropEntry(plugins, "score", in, schema.Entry(plugins, "score", in, plugin))
	}
	switch {
	case weight > 0:
		schema.Enable(plugins, "score", plugin, weight)
	case t.weight(plugin) > 0:
		schema.Disable(plugins, "score", plugin)
	}
	set := node.Get(plugins, "score")
	node.Prune(set, "enabled")
	node.Prune(set, "disabled")
	node.Prune(plugins, "score")
}

// BreakTies returns the configuration for a simulation whose scheduler gives the same nodes to the
// same pods in each run: it examines one node at a time, and extenders at the addresses prefer a
// different node for each pod among nodes with the same score. Each extender contributes a base-11
// digit to a rank, the least first: its scores are from 0 to 10. The weights of plugins and the
// other extenders, to which the given ones are added, are so much larger that a rank matters only
// among equal nodes.
func (t *Tunable) BreakTies(given []schema.Extender, addresses []string, verb string) ([]byte, error) {
	c := t.Copy()
	addExtenders(c.doc.Root, given)
	node.Put(c.doc.Root, "parallelism", node.Int(1))
	factor := 10 // a scheduler multiplies the scores of extenders by 10 (prioritizeNodes)
	ignorable, names := false, true
	list := node.List(c.doc.Root, "extenders")
	others := slices.Clone(list.Content)
	for _, address := range addresses {
		list.Content = append(list.Content, schema.Extender{URLPrefix: address, PrioritizeVerb: verb,
			Weight: int64(factor / 10), HTTPTimeout: recorderTimeout, Ignorable: &ignorable, NodeCacheCapable: &names}.Node())
		factor *= 11
	}
	for _, e := range others {
		if weight := node.Number(e, "weight"); weight > 0 {
			node.Put(e, "weight", node.Int(factor*weight))
		}
	}
	for _, profile := range c.doc.Profiles() {
		c.profile = profile
		for _, e := range node.Items(profile, "plugins", schema.MultiPoint, "enabled") {
			if name := node.Text(e, "name"); !versions.EverInTree(name) {
				node.Put(e, "weight", node.Int(factor*max(1, node.Number(e, "weight"))))
			}
		}
		for _, name := range c.scoringPlugins() {
			if weight := c.weight(name); weight > 0 {
				c.setWeight(name, min(weight, 1000)*factor)
			}
		}
	}
	return c.YAML()
}

// scoringPlugins returns the plugins that the profile lists at score, and in-tree plugins that can
// score.
func (t *Tunable) scoringPlugins() []string {
	var all []string
	for _, e := range node.Items(t.profile, "plugins", "score", "enabled") {
		all = append(all, node.Text(e, "name"))
	}
	for _, p := range schema.InTreePlugins() {
		if !slices.Contains(all, p.Name) && schema.CanEnable(p.Name, "score", t.minor) {
			all = append(all, p.Name)
		}
	}
	return all
}
