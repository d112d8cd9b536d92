package convert

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// profileConversion converts one profile.
type profileConversion struct {
	*conversion
	profile *yaml.Node
	// sets contains the plugin set of each extension point.
	sets *yaml.Node
}

// run applies the rules in order: names are settled before weights, and weights before
// disableFirst.
func (c *profileConversion) run() {
	c.dropNameless()
	c.dropIgnored()
	c.dropWrittenDefaults()
	c.preEnqueue()
	c.disableLater()
	c.expandMultiPoint()
	c.scoring()
	c.nodeLabels()
	off := schema.DisabledNames(c.sets, "score")
	c.replaceNames()
	c.keepDefaultWeights()
	c.lostDefaults(off)
	c.disableAvoidPods()
	c.dropUnsupportedPoints()
	c.dropUnsupportedEntries()
	c.checkNames()
	c.disableFirst()
	c.disableOverridden()
	c.spreadDefaulting()
	c.pluginArgs()
	c.pruneEmpty()
}

// pruneEmpty removes plugin sets that are empty after the conversion.
func (c *profileConversion) pruneEmpty() {
	for _, point := range schema.ExtensionPoints() {
		if set := node.Get(c.sets, point.Name); node.IsMapping(set) {
			node.Prune(set, "enabled")
			node.Prune(set, "disabled")
		}
		node.Prune(c.sets, point.Name)
	}
	node.Prune(c.profile, "plugins")
	node.Prune(c.profile, "pluginConfig")
}
