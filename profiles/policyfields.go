package profiles

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const policyKind = "Policy"

// policyAPI stands for the config API of a Policy: it is none of the others, and
// 1.20–1.22 read it (staging/src/k8s.io/kube-scheduler/config/v1/register.go).
func policyAPI() api { return api{name: "a Policy", duplicates: true, set: inV1beta1} }

func isPolicyVersion(version string) bool {
	return version == "v1" || version == configGroup+"/v1"
}

// policyObject is Policy (staging/src/k8s.io/kube-scheduler/config/v1/types.go,
// 1.22).
func policyObject() object {
	return object{fields: []field{
		{name: "apiVersion", kind: kindString},
		{name: "kind", kind: kindString},
		{name: "predicates", kind: kindObjects, object: predicatePolicy},
		{name: "priorities", kind: kindObjects, object: priorityPolicy},
		{name: "extenders", kind: kindObjects, object: legacyExtender},
		{name: "hardPodAffinitySymmetricWeight", kind: kindInt, bounded: true, most: 100},
		{name: "alwaysCheckAllPredicates", kind: kindBool},
	}}
}

func predicatePolicy() object {
	return object{also: oneArgument, fields: []field{
		{name: "name", kind: kindString, required: true},
		{name: "argument", kind: kindObject, object: func() object {
			return object{fields: []field{
				{name: "serviceAffinity", kind: kindObject, object: func() object {
					return object{fields: []field{{name: "labels", kind: kindStrings}}}
				}},
				{name: "labelsPresence", kind: kindObject, object: func() object {
					return object{fields: []field{{name: "labels", kind: kindStrings}, {name: "presence", kind: kindBool}}}
				}},
			}}
		}},
	}}
}

func priorityPolicy() object {
	return object{also: oneArgument, fields: []field{
		{name: "name", kind: kindString, required: true},
		{name: "weight", kind: kindInt, required: true, bounded: true, least: 1},
		{name: "argument", kind: kindObject, object: func() object {
			return object{fields: []field{
				{name: "serviceAntiAffinity", kind: kindObject, object: func() object {
					return object{fields: []field{{name: "label", kind: kindString, required: true}}}
				}},
				{name: "labelPreference", kind: kindObject, object: func() object {
					return object{fields: []field{{name: "label", kind: kindString, required: true}, {name: "presence", kind: kindBool}}}
				}},
				{name: "requestedToCapacityRatioArguments", kind: kindObject, object: ratioArguments},
			}}
		}},
	}}
}

func ratioArguments() object {
	return object{fields: []field{
		{name: "shape", kind: kindObjects, object: shapePoint},
		{name: "resources", kind: kindObjects, object: resourceSpec},
	}}
}

// oneArgument holds a custom predicate or priority to the one argument that it
// may have (validatePredicate in pkg/scheduler/framework/plugins/legacy_registry.go).
func oneArgument(p *problems, n *yaml.Node, _ api, where string) {
	key, argument := lookup(n, "argument")
	if isMapping(argument) && len(argument.Content) != 2 {
		p.add(at(key), "give one; a second entry can have the other", "%s.argument has %d arguments, wanted is one", where, len(argument.Content)/2)
	}
}

// legacyExtender is an extender of a Policy: HTTPS is spelt another way, and the
// time-out is a number of nanoseconds.
func legacyExtender() object {
	o := extender()
	for i, f := range o.fields {
		switch f.name {
		case "enableHTTPS":
			o.fields[i].name = "enableHttps"
		case "httpTimeout":
			o.fields[i] = field{name: f.name, kind: kindNanoseconds}
		}
	}
	return o
}

// lenientExtenders reads the extenders of a Policy as 1.20–1.22 did: in any case,
// and passing over what they do not know. What looks mistyped stays, to be
// complained about.
func (d *document) lenientExtenders() {
	var names []string
	for _, f := range legacyExtender().fields {
		names = append(names, f.name)
	}
	for _, e := range items(get(d.root, "extenders")) {
		properCase(e, legacyExtender())
		for i := 0; isMapping(e) && i+1 < len(e.Content); i += 2 {
			key := e.Content[i]
			if slices.Contains(names, key.Value) || nearest(key.Value, names) != "" {
				continue
			}
			e.Content = append(e.Content[:i:i], e.Content[i+2:]...)
			i -= 2
			d.notes = append(d.notes, Note{Line: key.Line, Column: key.Column, Message: key.Value + " left out: it is no field of an extender, and was passed over"})
		}
	}
}

// properCase spells the fields of the extenders of a Policy as they are spelt
// now: their decoder does not mind the case (UnmarshalJSON of LegacyExtender).
func properCase(n *yaml.Node, o object) {
	if !isMapping(n) {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := slices.IndexFunc(o.fields, func(f field) bool { return strings.EqualFold(f.name, key.Value) })
		if at < 0 {
			continue
		}
		f := o.fields[at]
		key.Value = f.name
		below := []*yaml.Node{n.Content[i+1]}
		if f.kind == kindObjects {
			below = items(n.Content[i+1])
		}
		for _, b := range below {
			if f.object != nil {
				properCase(b, f.object())
			}
		}
	}
}
