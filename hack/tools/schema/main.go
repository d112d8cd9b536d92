// Command schema prints the JSON schema of a kind, pmk-sched.yaml by default, or, with the argument
// crd, the CustomResourceDefinition, from the types and comments in api/v1alpha1. It runs in the
// repository's root.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// crd is the argument for the CustomResourceDefinition.
const crd = "crd"

func main() {
	what := v1alpha1.Kind
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	if err := run(what); err != nil {
		fmt.Fprintln(os.Stderr, "generate the schema:", err)
		os.Exit(1)
	}
}

// run prints a kind's schema, or the CustomResourceDefinition.
func run(kind string) error {
	r := &jsonschema.Reflector{DoNotReference: true, Anonymous: true, Mapper: mapType}
	if err := r.AddGoComments("github.com/pmk-sched/pmk-sched", "./api/v1alpha1"); err != nil {
		return err
	}
	isTest := kind == v1alpha1.TestKind
	s := r.Reflect(&v1alpha1.CustomScheduler{})
	switch {
	case isTest:
		s = r.Reflect(&v1alpha1.SchedulingTest{})
	case kind == crd:
		return writeCRD(s, r.Reflect(&v1alpha1.CustomSchedulerStatus{}))
	}
	s.Title = kind
	s.Version = "http://json-schema.org/draft-07/schema#" // what editors support
	for name, value := range map[string]string{"apiVersion": v1alpha1.APIVersion, "kind": kind} {
		s.Properties.Set(name, &jsonschema.Schema{Type: "string", Enum: []any{value}})
	}
	metadata := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema,
		Description: "Name and namespace of the scheduler.",
	}
	s.Required = []string{"apiVersion", "kind"}
	if isTest {
		metadata.Description = "Name of the test."
		metadata.Properties.Set("name", &jsonschema.Schema{Type: "string", Description: "Name of the test."})
		s.Required = append(s.Required, "expect")
	} else {
		metadata.Properties.Set("name",
			&jsonschema.Schema{Type: "string", Description: "Name of the scheduler: pods put it in spec.schedulerName."})
		metadata.Properties.Set("namespace",
			&jsonschema.Schema{Type: "string", Description: "Namespace of the objects. The default is kube-system."})
	}
	s.Properties.Set("metadata", metadata)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}

// mapType returns the schema for a type that is written in another form than its Go type.
func mapType(t reflect.Type) *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	number := &jsonschema.Schema{Type: "integer", Minimum: "1"}
	switch t {
	case reflect.TypeFor[v1alpha1.AutoInt]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{number, {Type: "string", Enum: []any{v1alpha1.Auto}}}}
	case reflect.TypeFor[v1alpha1.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case reflect.TypeFor[v1alpha1.Document]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "object"}, text}}
	case reflect.TypeFor[v1alpha1.Quantities]():
		return &jsonschema.Schema{Type: "object",
			AdditionalProperties: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text, {Type: "number"}}}}
	case reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[v1alpha1.Text]():
		return text
	case reflect.TypeFor[v1alpha1.Amount]():
		return amount()
	case reflect.TypeFor[v1alpha1.Bound]():
		limits := jsonschema.NewProperties()
		for _, name := range v1alpha1.LimitFields() {
			limits.Set(name, amount())
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "number", Minimum: "0"}, {Type: "object",
			Properties: limits, AdditionalProperties: jsonschema.FalseSchema, MinProperties: ptr[uint64](1)}}}
	case reflect.TypeFor[v1alpha1.TestObjects]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text, {Type: "object"}}}
	case reflect.TypeFor[v1alpha1.TestStep]():
		return stepSchema()
	case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]():
		return &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

// amount is a number, or a text with a quantity or a percentage.
func amount() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "number", Minimum: "0"},
		{Type: "string", Pattern: `^[0-9.]+(m|k|Ki|M|Mi|G|Gi|T|Ti|%)?$`}}}
}

// stepSchema is the schema of a scenario step, which pmk-sched's package scenario reads.
func stepSchema() *jsonschema.Schema {
	list := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
	number := &jsonschema.Schema{Type: "integer", Minimum: "0"}
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(),
		AdditionalProperties: jsonschema.FalseSchema, Required: []string{"scenario"}}
	s.Properties.Set("scenario",
		&jsonschema.Schema{Type: "string", Enum: []any{"pending", "replace-all", "drain", "add", "nodes"}})
	s.Properties.Set("nodes", list)
	s.Properties.Set("files", list)
	s.Properties.Set("count", number)
	s.Properties.Set("limit", number)
	s.Properties.Set("add", &jsonschema.Schema{Type: "object", AdditionalProperties: number})
	return s
}
