// Package node reads and edits YAML nodes. A missing node is nil; functions that read accept nil,
// and some a path of field names.
package node

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sequence returns a sequence node with the given content.
func Sequence(content []*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: content}
}

// Copy returns a deep copy of n. For nil, it returns an empty sequence.
func Copy(n *yaml.Node) *yaml.Node {
	if n == nil {
		return Sequence(nil)
	}
	clone := *n
	clone.Content = nil
	for _, c := range n.Content {
		clone.Content = append(clone.Content, Copy(c))
	}
	return &clone
}

// Position is a line and column of the source; the zero value is the document as a whole.
type Position struct{ Line, Column int }

// At returns a node's position; an added node has none.
func At(n *yaml.Node) Position {
	if n == nil {
		return Position{}
	}
	return Position{n.Line, n.Column}
}

// IsMapping reports whether the node at path below n is a mapping.
func IsMapping(n *yaml.Node, path ...string) bool {
	n = Get(n, path...)
	return n != nil && n.Kind == yaml.MappingNode
}

// IsSequence reports whether n is a sequence.
func IsSequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }

// Lookup returns the key and value nodes of a mapping's field, or nil, nil.
func Lookup(m *yaml.Node, name string) (key, value *yaml.Node) {
	if !IsMapping(m) {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// Get returns the value of a mapping's field, or nil.
func Get(m *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		_, m = Lookup(m, name)
	}
	return m
}

// Put sets a mapping's field in place, or appends it. A replaced value's comments are kept.
func Put(m *yaml.Node, name string, value *yaml.Node) {
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
	m.Content = append(m.Content, String(name), value)
}

// Remove removes a field from a mapping and returns its key and value, or nil.
func Remove(m *yaml.Node, name string) (key, value *yaml.Node) {
	if !IsMapping(m) {
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

// Child returns the mapping in a field and creates it if it is missing or null.
func Child(m *yaml.Node, name string) *yaml.Node {
	if n := Get(m, name); IsMapping(n) {
		return n
	}
	n := Mapping()
	Put(m, name, n)
	return n
}

// List returns the sequence in a field and creates it if it is missing or null.
func List(m *yaml.Node, name string) *yaml.Node {
	if n := Get(m, name); IsSequence(n) {
		return n
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	Put(m, name, n)
	return n
}

// Items returns the elements of the sequence at a path, or nil.
func Items(n *yaml.Node, path ...string) []*yaml.Node {
	n = Get(n, path...)
	if !IsSequence(n) {
		return nil
	}
	return n.Content
}

// Filter keeps the elements of a sequence for which the condition holds.
func Filter(n *yaml.Node, holds func(*yaml.Node) bool) {
	if !IsSequence(n) {
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

// Prune removes a field if it is an empty mapping or sequence.
func Prune(m *yaml.Node, name string) {
	if n := Get(m, name); n != nil && (IsNull(n) || n.Kind != yaml.ScalarNode && len(n.Content) == 0) {
		Remove(m, name)
	}
}

// Mapping returns a mapping of the given fields: name, value, name, value…
func Mapping(fields ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(fields); i += 2 {
		n.Content = append(n.Content, String(fields[i].(string)), fields[i+1].(*yaml.Node))
	}
	return n
}

// BlockStyle writes JSON as block-style YAML.
func BlockStyle(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle | yaml.DoubleQuotedStyle
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		SetString(n, n.Value)
	}
	for _, c := range n.Content {
		BlockStyle(c)
	}
}

// IsYAML11Bool reports whether an unquoted word is a boolean in YAML 1.1, which Kubernetes reads.
func IsYAML11Bool(n *yaml.Node) bool {
	switch strings.ToLower(n.Value) {
	case "yes", "no", "on", "off", "y", "n":
		return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.TaggedStyle) == 0
	}
	return false
}

// Describe describes a node for an error message.
func Describe(n *yaml.Node) string {
	switch {
	case IsMapping(n):
		return "a mapping"
	case IsSequence(n):
		return "a list"
	case IsNull(n):
		return "empty"
	case n.Tag == "!!str":
		return strconv.Quote(n.Value)
	}
	return n.Value
}

// IsNull reports whether the node at path below n is missing or null.
func IsNull(n *yaml.Node, path ...string) bool {
	n = Get(n, path...)
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// Text returns the scalar at a path, or "" for anything else.
func Text(n *yaml.Node, path ...string) string {
	n = Get(n, path...)
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// Number returns the integer at a path, or 0. A float without a fraction is one, as in JSON.
func Number(n *yaml.Node, path ...string) int {
	text := Text(n, path...)
	if i, err := strconv.Atoi(text); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return 0
	}
	return int(f)
}

// String returns a string scalar, quoted where necessary.
func String(s string) *yaml.Node {
	n := &yaml.Node{}
	SetString(n, s)
	return n
}

// SetString makes a node a string scalar. Kubernetes reads YAML 1.1, where a bare "y" is true; the
// encoder only knows YAML 1.2.
func SetString(n *yaml.Node, s string) {
	n.SetString(s)
	if n.Style == 0 && IsYAML11Bool(n) {
		n.Style = yaml.DoubleQuotedStyle
	}
}

// IsZero reports whether a number is missing or 0, so that the scheduler uses its default.
func IsZero(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return s == "" || err == nil && v == 0
}

// IsTrue reads the boolean at a path as YAML 1.1 does, like the scheduler.
func IsTrue(n *yaml.Node, path ...string) bool {
	switch strings.ToLower(Text(n, path...)) {
	case "true", "yes", "on", "y":
		return true
	}
	return false
}

// Int returns a node with an integer.
func Int(i int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(i)}
}

// Bool returns a node with a boolean.
func Bool(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}
