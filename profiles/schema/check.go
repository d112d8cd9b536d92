package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// checkObject reports the parts of a mapping that the config API's strict decoder rejects: unknown
// fields, duplicate fields, wrong value types. where is the mapping's path, empty for the document.
func checkObject(p *Problems, n *yaml.Node, o Object, a API, where string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if line, twice := seen[key.Value]; twice {
			p.Add(node.At(key), "remove one of them", "duplicate field %q, first set in line %d", Join(where, key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		f, ok := o.Field(key.Value, a)
		if !ok {
			unknownField(p, key, o, a, where)
			continue
		}
		checkValue(p, value, f, a, Join(where, f.Name))
	}
	for _, f := range o.Fields {
		if f.Required && node.Text(n, f.Name) == "" {
			p.Add(node.At(n), "", "%s has no %s", where, f.Name)
		}
	}
	if o.Also != nil {
		o.Also(p, n, a, where)
	}
}

// unknownField reports an unknown field and suggests another spelling, or names the config API that
// has it.
func unknownField(p *Problems, key *yaml.Node, o Object, a API, where string) {
	var names []string
	for _, f := range o.Fields {
		if f.In(a) {
			names = append(names, f.Name)
		} else if f.Name == key.Value {
			p.Add(node.At(key), "remove it, or use the config API that has it", "field %q does not exist in %s",
				Join(where, key.Value), a.Name)
			return
		}
	}
	try := "fields here: " + strings.Join(names, ", ")
	if place, known := expectedLocations()[key.Value]; known {
		try = key.Value + " belongs " + place
	} else if meant := Nearest(key.Value, names); meant != "" {
		try = fmt.Sprintf("did you mean %q?", meant)
	}
	p.Add(node.At(key), try, "unknown field %q", Join(where, key.Value))
}

// expectedLocations maps fields that are often put at the wrong level to their location.
func expectedLocations() map[string]string {
	return map[string]string{
		"plugins":       "in a profile: indent it below the profile's schedulerName",
		"pluginConfig":  "in a profile: indent it below the profile's schedulerName",
		"schedulerName": "in a profile: `profiles:` and `- schedulerName: …`",
		"enabled":       "below an extension point, such as score",
		"disabled":      "below an extension point, such as score",
		"weight":        "next to the name of a plugin in `enabled`",
		"leaderElect":   "below leaderElection",
		"kubeconfig":    "below clientConnection",
		"qps":           "below clientConnection",
		"burst":         "below clientConnection",
	}
}

func checkValue(p *Problems, n *yaml.Node, f Field, a API, where string) {
	if node.IsNull(n) && (f.Kind != kindDuration || f.Default != "") { // a duration that is a pointer has a default
		return
	}
	wanted := ""
	switch f.Kind {
	case kindObject:
		if node.IsMapping(n) {
			checkObject(p, n, f.Object(), a, where)
			return
		}
		wanted = "a mapping"
	case KindObjects, kindStrings:
		if node.IsSequence(n) {
			checkItems(p, n, f, a, where)
			return
		}
		wanted = "a list"
	default:
		wanted = scalarProblem(n, f)
	}
	if wanted != "" {
		try := ""
		if templateText.MatchString(n.Value) {
			try = "the file is a template: " + renderTemplate
		}
		p.Add(node.At(n), try, "%s: expected %s, got %s", where, wanted, node.Describe(n))
	}
}

func checkItems(p *Problems, n *yaml.Node, f Field, a API, where string) {
	item := f
	item.Kind = kindString
	if f.Kind == KindObjects {
		item.Kind = kindObject
	}
	for i, c := range n.Content {
		place := fmt.Sprintf("%s[%d]", where, i)
		if node.IsNull(c) {
			p.Add(node.At(c), "remove the line, or complete it", "%s is empty", place)
			continue
		}
		checkValue(p, c, item, a, place)
	}
}

// scalarProblem describes the expected value, or returns "" if the value is valid.
func scalarProblem(n *yaml.Node, f Field) string {
	if f.Kind == kindAny {
		return ""
	}
	scalar := n.Kind == yaml.ScalarNode
	switch f.Kind {
	case kindString:
		if scalar && n.Tag == "!!str" && node.IsYAML11Bool(n) {
			return "a quoted string (Kubernetes reads it as a boolean)"
		}
		if !scalar || n.Tag != "!!str" {
			return "a string"
		}
	case kindBool:
		if !scalar || n.Tag != "!!bool" && !node.IsYAML11Bool(n) {
			return "true or false"
		}
	case kindDuration:
		if _, err := time.ParseDuration(n.Value); !scalar || err != nil {
			return "a duration such as 15s"
		}
	case kindNanoseconds:
		if _, err := strconv.ParseInt(n.Value, 10, 64); !scalar || n.Tag != "!!int" || err != nil {
			return "a whole number of nanoseconds"
		}
	case kindFloat:
		v, err := strconv.ParseFloat(n.Value, 32)
		if !scalar || n.Tag == "!!str" || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return "a number"
		}
	case kindInt, kindInt64:
		bits := 32
		if f.Kind == kindInt64 {
			bits = 64
		}
		i, err := strconv.ParseInt(n.Value, 10, bits)
		if whole := int64(node.Number(n)); n.Tag == "!!float" && whole != 0 {
			i, err = whole, nil
		}
		switch {
		case !scalar || n.Tag != "!!int" && n.Tag != "!!float" || err != nil:
			return "a whole number"
		case f.Bounded && f.Most > 0 && (i < int64(f.Least) || i > int64(f.Most)):
			return fmt.Sprintf("a number from %d to %d", f.Least, f.Most)
		case f.Bounded && i < int64(f.Least):
			return fmt.Sprintf("a number from %d", f.Least)
		}
	}
	return ""
}

// checkDisabled reports an element of disabled without a name.
func checkDisabled(p *Problems, n *yaml.Node, _ API, where string) {
	if node.Text(n, "name") == "" {
		p.AddAccepted(node.At(n), "remove it, or set its name", "%s has no name and disables nothing", where)
	}
}

// checkArgs checks one pluginConfig element: the kind of its args has to match its name
// (decodeNestedObjects in staging/src/k8s.io/kube-scheduler/config/<api>/types.go).
func checkArgs(p *Problems, n *yaml.Node, a API, where string) {
	name, given := node.Text(n, "name"), node.Get(n, "args")
	if name == "" {
		p.AddAccepted(node.At(n), "add `name:` and the name of the plugin to this element of the list",
			"%s has no name: its arguments reach no plugin", where)
	}
	known, ok := KnownArgs(name)
	if !ok || node.IsNull(given) {
		return
	}
	if !known.In(a) {
		return
	}
	if !node.IsMapping(given) {
		p.Add(node.At(given), "", "%s.args: expected a mapping, got %s", where, node.Describe(given))
		return
	}
	checkObject(p, given, known.Object(), a, where+".args")
	if k := node.Get(given, "kind"); node.Text(k) != "" && node.Text(k) != name+"Args" {
		p.Add(node.At(k), "write "+name+"Args, or remove the line", "args of plugin %s: unexpected kind %q", name, k.Value)
	}
	if v := node.Get(given, "apiVersion"); node.Text(v) != "" && node.Text(v) != ConfigGroup+"/"+a.Name {
		p.Add(node.At(v), "remove the line", "args of plugin %s: apiVersion %q in a %s file", name, v.Value, a.Name)
	}
}
