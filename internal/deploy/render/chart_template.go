package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	nameExpression      = "{{ .Values.name }}"
	namespaceExpression = "{{ .Release.Namespace }}"
)

// escape keeps braces in text from being read as template actions.
func escape(text string) string { return strings.ReplaceAll(text, "{{", "{{`{{`}}") }

// reference returns the template for a field that refers to the scheduler by its name, its
// namespace or its kubeconfig. Other text is escaped. parent is the field around it.
func (in Input) reference(parent, field, text string) string {
	kubeconfig := "/kubeconfig-for-" + in.Name + ".yaml"
	switch field {
	case "namespace", "resourceNamespace", "--policy-configmap-namespace":
		if text == in.Namespace {
			return namespaceExpression
		}
	case "schedulerName", "resourceName", "app.kubernetes.io/instance":
		if text == in.Name {
			return nameExpression
		}
	case "kubeconfig", "command":
		if strings.HasSuffix(text, kubeconfig) {
			return escape(strings.TrimSuffix(text, kubeconfig)) + "/kubeconfig-for-" + nameExpression + ".yaml"
		}
		if flag, value, _ := strings.Cut(text, "="); strings.HasPrefix(flag, "--policy-configmap") {
			return flag + "=" + in.reference("", flag, value)
		}
	case "name": // containers and volumes have their own names
		if parent != "metadata" && parent != "roleRef" && parent != "subjects" && parent != "configMap" {
			break
		}
		return in.objectName(text)
	case "resourceNames", "secretName", "--policy-configmap":
		return in.objectName(text)
	}
	return escape(text)
}

// objectName returns the template for an object's name, which begins with the scheduler name.
func (in Input) objectName(name string) string {
	if name == in.Name || strings.HasPrefix(name, in.Name+"-") {
		return nameExpression + name[len(in.Name):]
	}
	return escape(name)
}

// template returns a value in which references to the scheduler are templates.
func (in Input) template(field string, value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	return in.walk("", field, plain), nil
}

func (in Input) walk(parent, field string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = in.walk(field, key, value[key])
		}
	case []any:
		for i := range value {
			value[i] = in.walk(parent, field, value[i])
		}
	case string:
		return in.reference(parent, field, value)
	}
	return value
}

// configurationTemplate returns the scheduler configuration as a template that has expressions
// for the scheduler name and the namespace. All other text is unchanged.
func (in Input) configurationTemplate(text string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return "", fmt.Errorf("read the configuration: %w", err)
	}
	starts := []int{0} // of the lines
	for line := range strings.Lines(text) {
		starts = append(starts, starts[len(starts)-1]+len(line))
	}
	var out strings.Builder
	written := 0
	visit("", &document, func(field string, n *yaml.Node) {
		expression := in.reference("", field, n.Value)
		if expression == escape(n.Value) {
			return
		}
		from := starts[n.Line-1] + n.Column - 1
		from += max(0, strings.Index(text[from:], n.Value)) // after a quote
		out.WriteString(escape(text[written:from]) + expression)
		written = from + len(n.Value)
	})
	out.WriteString(escape(text[written:]))
	return out.String(), nil
}

// visit calls do for each scalar value, in the text's order. field is the value's key.
func visit(field string, n *yaml.Node, do func(field string, n *yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		do(field, n)
	}
	for i, child := range n.Content {
		switch {
		case n.Kind != yaml.MappingNode:
			visit(field, child, do)
		case i%2 == 1:
			visit(n.Content[i-1].Value, child, do)
		}
	}
}
