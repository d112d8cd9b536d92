package convert

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// dropUnsupported removes from a mapping, recursively, the fields that the target lacks. Fields
// that other rules convert are already gone.
func (c *conversion) dropUnsupported(n *yaml.Node, o schema.Object, where string) {
	for _, f := range o.Fields {
		key, value := node.Lookup(n, f.Name)
		if key == nil {
			continue
		}
		if !f.In(c.To) {
			c.dropField(n, key, f, where)
			continue
		}
		if f.Object == nil {
			continue
		}
		below := []*yaml.Node{value}
		if f.Kind == schema.KindObjects {
			below = node.Items(value)
		}
		for _, b := range below {
			c.dropUnsupported(b, f.Object(), schema.Join(where, f.Name))
		}
	}
}

func (c *conversion) dropField(n, key *yaml.Node, f schema.Field, where string) {
	name := schema.Join(where, f.Name)
	_, value := node.Lookup(n, f.Name)
	switch {
	case node.IsNull(value):
		node.Remove(n, f.Name)
	case f.Default != "" && f.HasDefault(value):
		node.Remove(n, f.Name)
		c.Note(key, "%s left out: %s does not have it, and it is the default", name, c.Release)
	case f.Lost != "":
		node.Remove(n, f.Name)
		c.Note(key, "%s left out: %s does not have it; %s", name, c.Release, f.Lost)
	case f.Hoisted && len(c.doc.Profiles()) == 1:
		node.Remove(n, f.Name)
		node.Put(c.doc.Root, f.Name, value)
		c.Note(key, "%s moved to the top level: %s only has it there", f.Name, c.Release)
	default:
		node.Remove(n, f.Name)
		c.Loss(key, "remove it", "%s does not have %s in %s", c.Release, name, c.To.Name)
	}
}

// hasField reports whether the target has a top-level field.
func (c *conversion) hasField(name string) bool {
	_, ok := schema.Configuration().Field(name, c.To)
	return ok
}
