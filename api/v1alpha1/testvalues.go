package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsyaml "sigs.k8s.io/yaml"
)

// invalidAt returns an error with a value's line.
func invalidAt(node *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", node.Line, fmt.Sprintf(format, args...))}}
}

// Text is a text that may be empty. Another scalar is an error.
type Text string

// UnmarshalYAML reads a text.
func (t *Text) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return invalidAt(node, `expected a part of the scheduler's reason, or "" for any`)
	}
	*t = Text(node.Value)
	return nil
}

// Amount is a number, a quantity such as 500m or 64Gi, or a percentage such as 90%.
type Amount struct {
	Value float64
	// Text is the amount as it is in the file.
	Text string
}

// UnmarshalYAML reads an amount, which is not negative.
func (a *Amount) UnmarshalYAML(node *yaml.Node) error {
	a.Text = node.Value
	if percent, ok := strings.CutSuffix(node.Value, "%"); ok {
		if n, err := strconv.ParseFloat(percent, 64); err == nil && n >= 0 && n <= 1e6 {
			a.Value = n / 100
			return nil
		}
	} else if q, err := resource.ParseQuantity(node.Value); err == nil && q.Sign() >= 0 {
		a.Value = q.AsApproximateFloat64()
		return nil
	}
	return invalidAt(node, "invalid amount %q: must be a number, a quantity such as 64Gi, or a percentage such as 90%%",
		node.Value)
}

// Bound has the limits for a number. A number alone is the only one.
type Bound struct{ Limits }

// UnmarshalYAML reads an amount or limits.
func (b *Bound) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		b.Exactly = &Amount{}
		return node.Decode(b.Exactly)
	}
	// The library does not check the fields below an Unmarshaler.
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(LimitFields(), key.Value) {
			return invalidAt(key, "unknown field %s", key.Value)
		}
	}
	return node.Decode(&b.Limits)
}

// LimitFields returns the field names in [Limits].
func LimitFields() []string { return []string{"exactly", "atLeast", "atMost", "above", "below"} }

// TestStep is a step as in a file for `pmk-sched simulate run`.
type TestStep struct{ Node *yaml.Node }

// UnmarshalYAML keeps the step: package scenario reads it.
func (s *TestStep) UnmarshalYAML(node *yaml.Node) error {
	s.Node = node
	return nil
}

// TestObjects is the path to a file or a directory, or Count objects like Object.
type TestObjects struct {
	Path string
	// Object is JSON, at Line in the file.
	Object json.RawMessage
	Line   int
	// Count is 0 for one object with Object's name; otherwise the names end in -1 and so on.
	Count int
}

// mostObjects bounds the number of objects per element.
const mostObjects = 100_000

// UnmarshalYAML reads a path, an object, or count and object.
func (o *TestObjects) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" && node.Value != "" {
		o.Path = node.Value
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		fields[node.Content[i].Value] = node.Content[i+1]
	}
	if fields["apiVersion"] != nil {
		return o.readObject(node)
	}
	if len(fields) != 2 || fields["count"] == nil || fields["object"] == nil {
		return invalidAt(node, "expected a path, an object, or count and object")
	}
	n, err := strconv.Atoi(fields["count"].Value)
	if err != nil || n < 1 || n > mostObjects {
		return invalidAt(fields["count"], "invalid number %q: must be between 1 and %d", fields["count"].Value, mostObjects)
	}
	o.Count = n
	return o.readObject(fields["object"])
}

func (o *TestObjects) readObject(node *yaml.Node) error {
	o.Line = node.Line
	text, err := yaml.Marshal(node)
	if err == nil {
		o.Object, err = sigsyaml.YAMLToJSONStrict(text)
	}
	var object struct {
		Metadata struct {
			Name any `json:"name"`
		} `json:"metadata"`
	}
	if err != nil {
		return invalidAt(node, "read object: %v", err)
	}
	if json.Unmarshal(o.Object, &object) != nil {
		return invalidAt(node, "expected an object with metadata.name")
	}
	// Kubernetes reads YAML 1.1, in which n and y are not text.
	switch name := object.Metadata.Name.(type) {
	case nil:
	case string:
		if name != "" {
			return nil
		}
	default:
		return invalidAt(node, "metadata.name is %v, not text: put it in quotes", name)
	}
	return invalidAt(node, "the object has no metadata.name")
}
