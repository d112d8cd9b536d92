package profiles

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a place in the source; the zero value is the document as a whole.
type position struct{ line, column int }

// at returns where a node was written. A node that was added has no place.
func at(n *yaml.Node) position {
	if n == nil {
		return position{}
	}
	return position{n.Line, n.Column}
}

func isMapping(n *yaml.Node) bool  { return n != nil && n.Kind == yaml.MappingNode }
func isSequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }
func isNull(n *yaml.Node) bool     { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// text returns the scalar's value, or "" for anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// number returns the scalar's value as an integer, or 0.
func number(n *yaml.Node) int {
	i, err := strconv.Atoi(text(n))
	if err != nil {
		return 0
	}
	return i
}

// lookup returns the key and value nodes of a mapping's field, or nil, nil.
func lookup(m *yaml.Node, name string) (key, value *yaml.Node) {
	if !isMapping(m) {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// get returns the value of a mapping's field, or nil.
func get(m *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		_, m = lookup(m, name)
	}
	return m
}

// put sets a field of a mapping, at its place where it is there, else at the end.
// The comments of a replaced value stay.
func put(m *yaml.Node, name string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != name {
			continue
		}
		if old := m.Content[i+1]; old != value && value.LineComment == "" {
			value.LineComment = old.LineComment
		}
		m.Content[i+1] = value
		return
	}
	m.Content = append(m.Content, str(name), value)
}

// remove takes a field out of a mapping and returns its key and value, or nil.
func remove(m *yaml.Node, name string) (key, value *yaml.Node) {
	if !isMapping(m) {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			key, value = m.Content[i], m.Content[i+1]
			m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
			return key, value
		}
	}
	return nil, nil
}

// child returns the mapping in a field, and makes it where it is missing or null.
func child(m *yaml.Node, name string) *yaml.Node {
	if n := get(m, name); isMapping(n) {
		return n
	}
	n := mapping()
	put(m, name, n)
	return n
}

// list returns the sequence in a field, and makes it where it is missing or null.
func list(m *yaml.Node, name string) *yaml.Node {
	if n := get(m, name); isSequence(n) {
		return n
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	put(m, name, n)
	return n
}

// items returns the elements of a sequence, none for anything else.
func items(n *yaml.Node) []*yaml.Node {
	if !isSequence(n) {
		return nil
	}
	return n.Content
}

// keep leaves in a sequence what the condition holds for.
func keep(n *yaml.Node, holds func(*yaml.Node) bool) {
	if !isSequence(n) {
		return
	}
	var kept []*yaml.Node
	for _, item := range n.Content {
		if holds(item) {
			kept = append(kept, item)
		}
	}
	n.Content = kept
}

// prune removes a field that is an empty mapping or sequence.
func prune(m *yaml.Node, name string) {
	if n := get(m, name); n != nil && (isNull(n) || n.Kind != yaml.ScalarNode && len(n.Content) == 0) {
		remove(m, name)
	}
}

// str is a string scalar, quoted where YAML would read it as something else.
func str(s string) *yaml.Node {
	n := &yaml.Node{}
	setString(n, s)
	return n
}

// setString makes a node a string scalar. Kubernetes reads YAML 1.1, where a bare
// "y" is true; the encoder minds 1.2 only.
func setString(n *yaml.Node, s string) {
	n.SetString(s)
	if n.Style == 0 && oldBool(n) {
		n.Style = yaml.DoubleQuotedStyle
	}
}

// zero says whether a number is missing or 0, for which the scheduler puts its
// default.
func zero(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return s == "" || err == nil && v == 0
}

// isTrue reads a boolean as YAML 1.1 does, like the scheduler.
func isTrue(n *yaml.Node) bool {
	switch strings.ToLower(text(n)) {
	case "true", "yes", "on", "y":
		return true
	}
	return false
}

func integer(i int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(i)}
}

func boolean(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

// mapping is a mapping of the given fields: name, value, name, value…
func mapping(fields ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(fields); i += 2 {
		n.Content = append(n.Content, str(fields[i].(string)), fields[i+1].(*yaml.Node))
	}
	return n
}

// blockStyle has JSON written as the YAML around it.
func blockStyle(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle | yaml.DoubleQuotedStyle
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		setString(n, n.Value)
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}
