// Command schema prints the JSON schema of pmk-sched.yaml or, with the argument crd, the
// CustomResourceDefinition, from the types and comments of api/v1alpha1. It runs in the root of the
// repository.
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate the schema:", err)
		os.Exit(1)
	}
}

func run() error {
	r := &jsonschema.Reflector{DoNotReference: true, Anonymous: true, Mapper: mapType}
	if err := r.AddGoComments("github.com/pmk-sched/pmk-sched", "./api/v1alpha1"); err != nil {
		return err
	}
	s := r.Reflect(&v1alpha1.CustomScheduler{})
	if len(os.Args) > 1 && os.Args[1] == "crd" {
		return writeCRD(s, r.Reflect(&v1alpha1.CustomSchedulerStatus{}))
	}
	s.Title = v1alpha1.Kind
	s.Version = "http://json-schema.org/draft-07/schema#" // what editors support
	for name, value := range map[string]string{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind} {
		s.Properties.Set(name, &jsonschema.Schema{Type: "string", Enum: []any{value}})
	}
	metadata := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema,
		Description: "Name and namespace of the scheduler.",
	}
	metadata.Properties.Set("name",
		&jsonschema.Schema{Type: "string", Description: "Name of the scheduler: pods put it in spec.schedulerName."})
	metadata.Properties.Set("namespace",
		&jsonschema.Schema{Type: "string", Description: "Namespace of the objects. The default is kube-system."})
	s.Properties.Set("metadata", metadata)
	s.Required = []string{"apiVersion", "kind"}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}

// mapType returns the schema of a type that is written in another form than its Go type.
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
	case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]():
		return &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}
	}
	return nil
}
