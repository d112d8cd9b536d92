package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// node is a JSON schema as data.
type node = map[string]any

// maxItems bounds the lists, and maxLength the strings, that CEL rules look at: without a bound,
// the API server estimates that a rule may cost too much
// (staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go).
const (
	maxItems  = 200
	maxLength = 4096
)

// quantity matches a quantity's text (k8s.io/apimachinery/pkg/api/resource/quantity.go).
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$`

// writeCRD prints the CustomResourceDefinition with the schema's structural form.
func writeCRD(file, status *jsonschema.Schema) error {
	root, err := structural(file)
	if err != nil {
		return err
	}
	state, err := structural(status)
	if err != nil {
		return err
	}
	properties := root["properties"].(node)
	spec := properties["spec"].(node)
	properties["status"] = state
	properties["apiVersion"], properties["kind"] = node{"type": "string"}, node{"type": "string"}
	// The names that manifest.ValidateName refuses are used by every cluster.
	properties["metadata"] = node{"type": "object", "properties": node{"name": node{
		"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}}}
	root["x-kubernetes-validations"] = rules(
		"!(self.metadata.name in ['default-scheduler', 'kube-scheduler', 'default'])", "the name is used by the cluster")
	root["required"] = []any{"spec"}
	refuseFiles(spec, reflect.TypeFor[v1alpha1.CustomSchedulerSpec]())
	restrict(spec)
	at(state, "conditions")["x-kubernetes-list-type"] = "map"
	at(state, "conditions")["x-kubernetes-list-map-keys"] = []any{"type"}
	definition := node{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": node{"name": v1alpha1.Resource + "." + v1alpha1.Group},
		"spec": node{
			"group": v1alpha1.Group, "scope": "Namespaced",
			"names": node{"kind": v1alpha1.Kind, "listKind": v1alpha1.Kind + "List", "plural": v1alpha1.Resource,
				"singular": strings.ToLower(v1alpha1.Kind)},
			"versions": []any{node{
				"name": v1alpha1.Version, "served": true, "storage": true, "subresources": node{"status": node{}},
				"schema": node{"openAPIV3Schema": root}, "additionalPrinterColumns": columns(),
			}},
		},
	}
	text, err := yaml.Marshal(definition)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

// columns are the `kubectl get` columns.
func columns() []any {
	column := func(name, kind, path string, priority int) any {
		return node{"name": name, "type": kind, "jsonPath": path, "priority": priority}
	}
	condition := func(name string) string { return `.status.conditions[?(@.type=="` + name + `")].` }
	return []any{
		column("Ready", "string", condition(v1alpha1.ConditionReady)+"status", 0),
		column("Scheduler", "string", ".status.release.scheduler", 0),
		column("Server", "string", ".status.release.server", 0),
		column("Verified", "date", ".status.lastVerified.time", 0),
		column("Reason", "string", condition(v1alpha1.ConditionReady)+"reason", 0),
		column("Age", "date", ".metadata.creationTimestamp", 0),
		column("Image", "string", ".status.release.image", 1),
		column("Message", "string", condition(v1alpha1.ConditionReady)+"message", 1),
	}
}

// structural returns a schema in the form that a CustomResourceDefinition requires
// (staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go).
func structural(s *jsonschema.Schema) (node, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a schema: %w", err)
	}
	var n node
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("read a schema: %w", err)
	}
	simplify(n)
	return n, nil
}

// simplify changes a schema and the schemas in it.
func simplify(n node) {
	for _, field := range []string{"$schema", "$id", "title"} {
		delete(n, field)
	}
	if n["additionalProperties"] == false {
		delete(n, "additionalProperties")
	}
	if text, ok := n["description"].(string); ok {
		n["description"] = strings.Join(strings.Fields(text), " ")
	}
	if choices, ok := n["anyOf"].([]any); ok {
		combine(n, choices)
	}
	for _, field := range []string{"items", "additionalProperties"} {
		if child, ok := n[field].(node); ok {
			simplify(child)
		}
	}
	if properties, ok := n["properties"].(node); ok {
		for _, child := range properties {
			simplify(child.(node))
		}
	}
}

// combine replaces a choice of types: a number or a text becomes an integer or a string, and a
// mapping or a text any value.
func combine(n node, choices []any) {
	delete(n, "anyOf")
	for _, choice := range choices {
		if choice.(node)["type"] == "object" {
			n["x-kubernetes-preserve-unknown-fields"] = true
			return
		}
	}
	n["x-kubernetes-int-or-string"] = true
	n["anyOf"] = []any{node{"type": "integer"}, node{"type": "string"}}
	n["pattern"] = quantity
	for _, choice := range choices {
		if values, ok := choice.(node)["enum"].([]any); ok {
			n["pattern"] = "^" + values[0].(string) + "$"
		}
		if least, ok := choice.(node)["minimum"]; ok {
			n["minimum"] = least
		}
	}
}

// refuseFiles makes the API server refuse the fields with the tag object.
func refuseFiles(n node, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			items, ok := n["items"].(node)
			if !ok {
				return
			}
			n["maxItems"], n = maxItems, items
		}
		t = t.Elem()
	}
	properties, ok := n["properties"].(node)
	if t.Kind() != reflect.Struct || !ok {
		return
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		child, ok := properties[name].(node)
		if !ok {
			continue
		}
		if reason := field.Tag.Get("object"); reason != "" {
			child["maxLength"] = maxLength
			child["x-kubernetes-validations"] = rules(v1alpha1.RuleNoFile, "not valid in an object: "+reason)
		}
		refuseFiles(child, field.Type)
	}
}

// restrict adds the rules that hold for objects only, or that the Go types check in Validate.
func restrict(spec node) {
	at(spec, "credentials")["enum"] = []any{v1alpha1.Auto, "serviceaccount"}
	at(spec, "image", "requireSignature")["pattern"] = `^(none|-----BEGIN [\s\S]+)$`
	at(spec, "extenders", "tlsConfig", "ca")["enum"] = []any{v1alpha1.CAAuto}
	at(spec, "releases", "oci")["pattern"] = "^[^@]+@sha256:[0-9a-f]{64}$"
	at(spec, "releases", "publicKey")["pattern"] = `^-----BEGIN [\s\S]+$`
	at(spec, "configuration")["not"] = node{"required": []any{"preset", "inline"}}
	plugin := at(spec, "source", "plugins")["items"].(node)
	plugin["x-kubernetes-validations"] = rules(
		"[has(self.builtin), has(self.module), has(self.path)].exists_one(x, x)", "one of builtin and module is required")
	spec["x-kubernetes-validations"] = []any{
		rule("!(has(self.anyNode) && self.anyNode && has(self.nodeSelector))",
			"anyNode and nodeSelector exclude each other"),
		rule("has(self.releases) || !(has(self.image) && (has(self.image.reference) || has(self.image.repository) || "+
			"has(self.image.base))) && !(has(self.source) && (has(self.source.plugins) || has(self.source.imports) || "+
			"has(self.source.from))) || has(self.image) && has(self.image.reference) && has(self.source) && "+
			"has(self.source.branch)", "releases is required, or image.reference and source.branch"),
	}
	at(spec, "releases")["x-kubernetes-validations"] = []any{
		rule("[has(self.items), has(self.configMap), has(self.oci)].exists_one(x, x)",
			"exactly one of items, configMap and oci is required"),
		rule("!has(self.publicKey) || has(self.oci)", "publicKey requires oci"),
	}
}

func rules(text, message string) []any { return []any{rule(text, message)} }

func rule(text, message string) node { return node{"rule": text, "message": message} }

// at returns a field's schema, through lists.
func at(n node, path ...string) node {
	for _, name := range path {
		if items, ok := n["items"].(node); ok {
			n = items
		}
		n = n["properties"].(node)[name].(node)
	}
	return n
}
