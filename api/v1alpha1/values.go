package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsyaml "sigs.k8s.io/yaml"
)

// AutoInt is a number above 0, or 0 for auto.
type AutoInt int

// UnmarshalYAML reads a number or the word auto.
func (a *AutoInt) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == Auto || node.Value == "" {
		return nil
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || n < 1 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf(
			"line %d: invalid value %q: must be a number above 0, or auto", node.Line, node.Value)}}
	}
	*a = AutoInt(n)
	return nil
}

// UnmarshalJSON reads a number or the word auto.
func (a *AutoInt) UnmarshalJSON(text []byte) error {
	if string(text) == `"`+Auto+`"` {
		*a = 0
		return nil
	}
	return json.Unmarshal(text, (*int)(a))
}

// Duration is a time span such as 500ms.
type Duration time.Duration

// UnmarshalYAML reads a duration in Go's notation, above 0.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf(
			"line %d: invalid duration %q: must be a value above 0 such as 500ms or 2s", node.Line, node.Value)}}
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes the duration in Go's notation.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads a duration in Go's notation.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(value)
	*d = Duration(parsed)
	return err
}

// Document is the text of a YAML document within the file: a mapping, or a string with the text. As
// JSON it is a string, which keeps order and comments.
type Document string

// UnmarshalYAML reads a mapping, or a string.
func (d *Document) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" {
		*d = Document(node.Value)
		return nil
	}
	text, err := yaml.Marshal(node)
	if err == nil && string(text) != "null\n" {
		*d = Document(text)
	}
	return err
}

// UnmarshalJSON reads an object, or a string.
func (d *Document) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(d))
	}
	*d = Document(text)
	return nil
}

// Quantities are resource amounts, such as cpu: 100m.
type Quantities corev1.ResourceList

// UnmarshalYAML reads quantities in Kubernetes' notation.
func (q *Quantities) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]yaml.Node
	if err := node.Decode(&values); err != nil {
		return err
	}
	list := Quantities{}
	for name, value := range values {
		parsed, err := resource.ParseQuantity(value.Value)
		if err != nil {
			return &yaml.TypeError{Errors: []string{fmt.Sprintf(
				"line %d: invalid quantity %q: must be a value such as 100m or 64Mi", value.Line, value.Value)}}
		}
		list[corev1.ResourceName(name)] = parsed
	}
	if len(list) > 0 {
		*q = list
	}
	return nil
}

// Rules are RBAC rules as in a ClusterRole.
type Rules []rbacv1.PolicyRule

// UnmarshalYAML reads rules with the RBAC API's field names.
func (r *Rules) UnmarshalYAML(node *yaml.Node) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	if err := sigsyaml.UnmarshalStrict(text, (*[]rbacv1.PolicyRule)(r)); err != nil {
		_, text, found := strings.Cut(err.Error(), "while decoding JSON: ")
		if !found {
			text = err.Error()
		}
		return &RulesError{Line: node.Line, Text: strings.TrimPrefix(text, "json: ")}
	}
	for i, rule := range *r {
		if len(rule.Verbs) == 0 || len(rule.Resources)+len(rule.NonResourceURLs) == 0 || len(rule.Resources) > 0 &&
			len(rule.APIGroups) == 0 {
			return &RulesError{Line: node.Line, Index: i, Incomplete: true}
		}
	}
	return nil
}

// MarshalYAML returns rules with the RBAC API's field names.
func (r Rules) MarshalYAML() (any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var plain any
	err = json.Unmarshal(text, &plain)
	return plain, err
}

// RulesError is returned for invalid rules.
type RulesError struct {
	Line int
	// Field is the path to the rules in the file. The default is spec.rbac.rules.
	Field string
	Text  string
	// Incomplete is set if the rule Index lacks a field.
	Incomplete bool
	Index      int
}

// Error returns the line, the field and the problem.
func (e *RulesError) Error() string {
	field := cmp.Or(e.Field, "spec.rbac.rules")
	if e.Incomplete {
		return fmt.Sprintf("line %d: %s[%d] needs verbs, and apiGroups and resources, or nonResourceURLs", e.Line, field,
			e.Index)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, field, e.Text)
}

// Hint returns advice for the user.
func (e *RulesError) Hint() string {
	if e.Incomplete {
		return ""
	}
	return "write a list of rules as in a ClusterRole: apiGroups, resources, verbs"
}
