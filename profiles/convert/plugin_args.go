package convert

import (
	"slices"
	"strings"

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

// pluginArgs writes the target's apiVersion to arguments and removes fields that it lacks.
func (c *profileConversion) pluginArgs() {
	for _, e := range slices.Clone(node.Items(c.profile, "pluginConfig")) {
		name, given := node.Text(e, "name"), node.Get(e, "args")
		known, ok := schema.KnownArgs(name)
		if !node.IsMapping(given) {
			continue
		}
		if !ok || slices.Contains(c.Plugins, name) {
			c.foreignArgs(name, given)
			continue
		}
		if !known.In(c.To) {
			c.dropArgs(e, known)
			continue
		}
		if v := node.Get(given, "apiVersion"); v != nil {
			v.Value = c.To.GroupVersion()
		}
		c.dropUnsupported(given, known.Object(), "args of "+name)
		if name == schema.VolumeBinding {
			c.dropDefaultShape(given, known)
		}
	}
}

// foreignArgs writes the target's apiVersion to the arguments of a plugin that is not in-tree, if
// they have the scheduler's group: their kind is registered for the config APIs that the release
// reads.
func (c *profileConversion) foreignArgs(name string, given *yaml.Node) {
	v := node.Get(given, "apiVersion")
	group, version, _ := strings.Cut(node.Text(v), "/")
	if group != schema.ConfigGroup || version == c.To.Name {
		return
	}
	v.Value = c.To.GroupVersion()
	c.Note(v, "args of plugin %s: apiVersion %s becomes %s, like the file", name, version, c.To.Name)
}

// dropArgs removes arguments of a kind that the target lacks. It is a loss unless they are the
// defaults.
func (c *profileConversion) dropArgs(e *yaml.Node, known schema.Args) {
	schema.DropConfig(c.profile, e)
	if known.HaveDefaults(node.Get(e, "args")) {
		c.Note(e, "the arguments of %s left out: %s does not have them, and they are the defaults", known.Plugin, c.Release)
		return
	}
	c.Loss(e, "remove the entry", "plugin %s does not have arguments in %s", known.Plugin, c.Release)
}

// dropDefaultShape removes the default shape of VolumeBinding where a feature gate would have to
// allow it.
func (c *profileConversion) dropDefaultShape(given *yaml.Node, known schema.Args) {
	gates := c.Release.Gates()
	if gates["VolumeCapacityPriority"].Default || gates["StorageCapacityScoring"].Default {
		return
	}
	f, _ := known.Object().Field("shape", c.To)
	if key, shape := node.Lookup(given, f.Name); !node.IsNull(shape) && f.HasDefault(shape) {
		node.Remove(given, f.Name)
		c.Note(key, "args of VolumeBinding.shape left out: it is the default, and %s only reads it with a feature gate",
			c.Release)
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
