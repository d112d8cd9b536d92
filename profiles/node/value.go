package node

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// Number returns the integer at a path, or 0.
func Number(n *yaml.Node, path ...string) int {
	i, err := strconv.Atoi(Text(n, path...))
	if err != nil {
		return 0
	}
	return i
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
