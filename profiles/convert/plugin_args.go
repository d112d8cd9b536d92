package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// onlyType reports whether arguments contain nothing but apiVersion and kind.
func onlyType(args *yaml.Node) bool {
	if !node.IsMapping(args) {
		return node.IsNull(args)
	}
	for i := 0; i < len(args.Content); i += 2 {
		if name := args.Content[i].Value; name != "apiVersion" && name != "kind" {
			return false
		}
	}
	return true
}

// pluginArgs writes the target's apiVersion to typed arguments and removes fields that it lacks.
func (c *profileConversion) pluginArgs() {
	for _, e := range slices.Clone(node.Items(c.profile, "pluginConfig")) {
		name, given := node.Text(e, "name"), node.Get(e, "args")
		known, ok := schema.KnownArgs(name)
		if !ok || !node.IsMapping(given) || slices.Contains(c.Plugins, name) {
			continue
		}
		if !known.In(c.To) {
			schema.DropConfig(c.profile, e)
			c.Loss(e, "remove the entry", "plugin %s does not have arguments in %s", name, c.Release)
			continue
		}
		if v := node.Get(given, "apiVersion"); v != nil {
			v.Value = c.To.GroupVersion()
		}
		c.dropUnsupported(given, known.Object(), "args of "+name)
	}
}

// spreadDefaulting writes out the defaultingType of PodTopologySpread: from v1beta2, constraints
// without it are rejected (pkg/scheduler/apis/config/<api>/defaults.go).
func (c *profileConversion) spreadDefaulting() {
	args := node.Get(schema.ConfigOf(c.profile, schema.PodTopologySpread), "args")
	key, constraints := node.Lookup(args, "defaultConstraints")
	if c.from.Set != schema.InV1beta1 || c.To.Set == schema.InV1beta1 || len(node.Items(constraints)) == 0 ||
		node.Text(args, "defaultingType") != "" {
		return
	}
	node.Put(args, "defaultingType", node.String("List"))
	c.Note(key, "defaultingType List written out: the default of %s is System, which rejects constraints", c.To.Name)
}
