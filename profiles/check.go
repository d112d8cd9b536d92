package profiles

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// check finds what a strict decoder of the config API would refuse in a mapping:
// unknown fields, fields given twice, values of another kind. where is the path
// of the mapping, empty for the document.
func check(p *problems, n *yaml.Node, o object, a api, where string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if line, twice := seen[key.Value]; twice {
			p.add(at(key), "keep one of the two", "field %q is given twice, first in line %d", join(where, key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		f, ok := o.field(key.Value, a)
		if !ok {
			unknownField(p, key, o, a, where)
			continue
		}
		checkValue(p, value, f, a, join(where, f.name))
	}
	for _, f := range o.fields {
		if f.required && text(get(n, f.name)) == "" {
			p.add(at(n), "", "%s has no %s", where, f.name)
		}
	}
	if o.also != nil {
		o.also(p, n, a, where)
	}
}

// field returns the field of that name as the config API has it.
func (o object) field(name string, a api) (field, bool) {
	for _, f := range o.fields {
		if f.name == name && f.in(a) {
			return f, true
		}
	}
	return field{}, false
}

func join(where, name string) string { return strings.TrimPrefix(where+"."+name, ".") }

// unknownField says what was probably meant: another spelling, or a field of
// another config API.
func unknownField(p *problems, key *yaml.Node, o object, a api, where string) {
	var names []string
	for _, f := range o.fields {
		if f.in(a) {
			names = append(names, f.name)
		} else if f.name == key.Value {
			p.add(at(key), "leave it out, or write the file in the config API that has it", "field %q does not exist in %s", join(where, key.Value), a.name)
			return
		}
	}
	try := "fields here: " + strings.Join(names, ", ")
	if place, known := belongs()[key.Value]; known {
		try = key.Value + " belongs " + place
	} else if meant := nearest(key.Value, names); meant != "" {
		try = fmt.Sprintf("did you mean %q?", meant)
	}
	p.add(at(key), try, "unknown field %q", join(where, key.Value))
}

// belongs says where the fields stand that are most often put at a wrong level.
func belongs() map[string]string {
	return map[string]string{
		"plugins":       "into a profile: indent it below the profile's schedulerName",
		"pluginConfig":  "into a profile: indent it below the profile's schedulerName",
		"schedulerName": "into a profile: `profiles:` and `- schedulerName: …`",
		"enabled":       "below an extension point, such as score",
		"disabled":      "below an extension point, such as score",
		"weight":        "beside the name of one plugin in `enabled`",
		"leaderElect":   "below leaderElection",
		"kubeconfig":    "below clientConnection",
		"qps":           "below clientConnection",
		"burst":         "below clientConnection",
	}
}

func checkValue(p *problems, n *yaml.Node, f field, a api, where string) {
	if isNull(n) {
		return
	}
	wanted := ""
	switch f.kind {
	case kindObject:
		if isMapping(n) {
			check(p, n, f.object(), a, where)
			return
		}
		wanted = "a mapping"
	case kindObjects, kindStrings:
		if isSequence(n) {
			checkItems(p, n, f, a, where)
			return
		}
		wanted = "a list"
	default:
		wanted = scalarProblem(n, f)
	}
	if wanted != "" {
		p.add(at(n), "", "%s is %s, wanted is %s", where, describe(n), wanted)
	}
}

func checkItems(p *problems, n *yaml.Node, f field, a api, where string) {
	item := f
	item.kind = kindString
	if f.kind == kindObjects {
		item.kind = kindObject
	}
	for i, c := range n.Content {
		place := fmt.Sprintf("%s[%d]", where, i)
		if isNull(c) {
			p.add(at(c), "remove the line, or say what is meant", "%s is empty", place)
			continue
		}
		checkValue(p, c, item, a, place)
	}
}

// scalarProblem returns what the value should have been, or "".
func scalarProblem(n *yaml.Node, f field) string {
	if f.kind == kindAny {
		return ""
	}
	scalar := n.Kind == yaml.ScalarNode
	switch f.kind {
	case kindString:
		if scalar && n.Tag == "!!str" && oldBool(n) {
			return "a string; Kubernetes takes it for true or false unless it is quoted"
		}
		if !scalar || n.Tag != "!!str" {
			return "a string"
		}
	case kindBool:
		if !scalar || n.Tag != "!!bool" && !oldBool(n) {
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
	case kindInt:
		i, err := strconv.ParseInt(n.Value, 10, 32)
		switch {
		case !scalar || n.Tag != "!!int" || err != nil:
			return "a whole number"
		case f.bounded && f.most > 0 && (i < int64(f.least) || i > int64(f.most)):
			return fmt.Sprintf("a number from %d to %d", f.least, f.most)
		case f.bounded && i < int64(f.least):
			return fmt.Sprintf("a number from %d", f.least)
		}
	}
	return ""
}

// oldBool says whether Kubernetes, which reads YAML 1.1, takes an unquoted word
// for true or false.
func oldBool(n *yaml.Node) bool {
	switch strings.ToLower(n.Value) {
	case "yes", "no", "on", "off", "y", "n":
		return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.TaggedStyle) == 0
	}
	return false
}

// checkArgs checks one element of pluginConfig: its args are of the kind that
// belongs to its name.
func checkArgs(p *problems, n *yaml.Node, a api, where string) {
	name, given := text(get(n, "name")), get(n, "args")
	known, ok := argsOf(name)
	if !ok || isNull(given) {
		return
	}
	if !known.in(a) {
		return
	}
	if !isMapping(given) {
		p.add(at(given), "", "%s.args is %s, wanted is a mapping", where, describe(given))
		return
	}
	check(p, given, known.object(), a, where+".args")
	if k := get(given, "kind"); k != nil && text(k) != name+"Args" {
		p.add(at(k), "write "+name+"Args, or leave the line out", "the args of plugin %s are of kind %q", name, k.Value)
	}
	if v := get(given, "apiVersion"); v != nil && text(v) != configGroup+"/"+a.name {
		p.add(at(v), "leave the line out", "the args of plugin %s are of %q in a file of %s", name, v.Value, a.name)
	}
}

// describe says what a node is, in words for an error.
func describe(n *yaml.Node) string {
	switch {
	case isMapping(n):
		return "a mapping"
	case isSequence(n):
		return "a list"
	case isNull(n):
		return "empty"
	case n.Tag == "!!str":
		return strconv.Quote(n.Value)
	}
	return n.Value
}
