// Package node reads and edits YAML nodes. A missing node is nil; functions that read accept nil,
// and some a path of field names.
package node

import (
	"go.yaml.in/yaml/v3"
)

// Sequence returns a sequence node with the given content.
func Sequence(content []*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: content}
}

// Copy returns a deep copy of n; of nil, an empty sequence.
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

// At returns the position of a node; an added node has none.
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

// Put sets a field of a mapping in place, or appends it. The comments of a replaced value are kept.
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
