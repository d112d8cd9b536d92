package schema

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// PolicyKind is the kind of the legacy Policy.
const PolicyKind = "Policy"

// policyAPI is a Policy's config API, which 1.20–1.22 read
// (staging/src/k8s.io/kube-scheduler/config/v1/register.go).
func policyAPI() API { return API{Name: "a Policy", Duplicates: true, Set: InV1beta1} }

func isPolicyVersion(version string) bool {
	return version == "v1" || version == ConfigGroup+"/v1"
}

// policyObject returns the fields of Policy (staging/src/k8s.io/kube-scheduler/config/v1/types.go,
// 1.22).
func policyObject() Object {
	return Object{Fields: []Field{
		{Name: "apiVersion", Kind: kindString},
		{Name: "kind", Kind: kindString},
		{Name: "predicates", Kind: KindObjects, Object: predicatePolicy},
		{Name: "priorities", Kind: KindObjects, Object: priorityPolicy},
		{Name: "extenders", Kind: KindObjects, Object: legacyExtender},
		{Name: "hardPodAffinitySymmetricWeight", Kind: kindInt, Bounded: true, Most: 100},
		{Name: "alwaysCheckAllPredicates", Kind: kindBool},
	}}
}

func predicatePolicy() Object {
	return Object{Also: oneArgument, Fields: []Field{
		{Name: "name", Kind: kindString, Required: true},
		{Name: "argument", Kind: kindObject, Object: func() Object {
			return Object{Fields: []Field{
				{Name: "serviceAffinity", Kind: kindObject, Object: func() Object {
					return Object{Fields: []Field{{Name: "labels", Kind: kindStrings}}}
				}},
				{Name: "labelsPresence", Kind: kindObject, Object: func() Object {
					return Object{Fields: []Field{{Name: "labels", Kind: kindStrings}, {Name: "presence", Kind: kindBool}}}
				}},
			}}
		}},
	}}
}

func priorityPolicy() Object {
	return Object{Also: oneArgument, Fields: []Field{
		{Name: "name", Kind: kindString, Required: true},
		{Name: "weight", Kind: kindInt, Required: true, Bounded: true, Least: 1},
		{Name: "argument", Kind: kindObject, Object: func() Object {
			return Object{Fields: []Field{
				{Name: "serviceAntiAffinity", Kind: kindObject, Object: func() Object {
					return Object{Fields: []Field{{Name: "label", Kind: kindString, Required: true}}}
				}},
				{Name: "labelPreference", Kind: kindObject, Object: func() Object {
					return Object{Fields: []Field{{Name: "label", Kind: kindString, Required: true},
						{Name: "presence", Kind: kindBool}}}
				}},
				{Name: "requestedToCapacityRatioArguments", Kind: kindObject, Object: ratioArguments},
			}}
		}},
	}}
}

func ratioArguments() Object {
	return Object{Fields: []Field{
		{Name: "shape", Kind: KindObjects, Object: shapePoint},
		{Name: "resources", Kind: KindObjects, Object: resourceSpec},
	}}
}

// oneArgument checks that a custom predicate or priority has only one argument (validatePredicate
// in pkg/scheduler/framework/plugins/legacy_registry.go).
func oneArgument(p *Problems, n *yaml.Node, _ API, where string) {
	key, argument := node.Lookup(n, "argument")
	if node.IsMapping(argument) && len(argument.Content) != 2 {
		p.Add(node.At(key), "keep one; add a second entry for the other", "%s.argument: expected one argument, got %d", where,
			len(argument.Content)/2)
	}
}

// legacyExtender returns the fields of a Policy's extender: enableHttps is spelled differently, and
// the timeout is in nanoseconds.
func legacyExtender() Object {
	o := extender()
	for i, f := range o.Fields {
		switch f.Name {
		case "enableHTTPS":
			o.Fields[i].Name = "enableHttps"
		case "httpTimeout":
			o.Fields[i] = Field{Name: f.Name, Kind: kindNanoseconds}
		}
	}
	return o
}

// lenientExtenders reads a Policy's extenders as 1.20–1.22 do: case-insensitively and ignoring
// unknown fields. Probable typos are kept, so that they are reported.
func (d *Document) lenientExtenders() {
	var names []string
	for _, f := range legacyExtender().Fields {
		names = append(names, f.Name)
	}
	for _, e := range node.Items(d.Root, "extenders") {
		properCase(e, legacyExtender())
		for i := 0; node.IsMapping(e) && i+1 < len(e.Content); i += 2 {
			key := e.Content[i]
			if slices.Contains(names, key.Value) || Nearest(key.Value, names) != "" {
				continue
			}
			e.Content = append(e.Content[:i:i], e.Content[i+2:]...)
			i -= 2
			d.Notes = append(d.Notes, Note{Line: key.Line, Column: key.Column,
				Message: key.Value + " left out: it is not a field of an extender, and was ignored"})
		}
	}
}

// properCase corrects the case of field names in a Policy's extenders, whose decoder is
// case-insensitive (UnmarshalJSON of LegacyExtender).
func properCase(n *yaml.Node, o Object) {
	if !node.IsMapping(n) {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := slices.IndexFunc(o.Fields, func(f Field) bool { return strings.EqualFold(f.Name, key.Value) })
		if at < 0 {
			continue
		}
		f := o.Fields[at]
		key.Value = f.Name
		below := []*yaml.Node{n.Content[i+1]}
		if f.Kind == KindObjects {
			below = node.Items(n.Content[i+1])
		}
		for _, b := range below {
			if f.Object != nil {
				properCase(b, f.Object())
			}
		}
	}
}
