package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// check decodes an object in JSON into its kind's Go type, as an API server does. Values with a
// wrong type, duplicate fields and unknown fields at the top level are errors. The result are other
// unknown fields' paths, without indexes: a newer release may have them. If client-go does not know
// a kind, only the metadata is checked.
func check(apiVersion, kind string, text []byte) (unknown []string, err error) {
	typed, notKnown := scheme.Scheme.New(schema.FromAPIVersionAndKind(apiVersion, kind))
	var into any = typed
	if notKnown != nil {
		into = &metav1.PartialObjectMetadata{}
	}
	found, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		return nil, wrongValue(text, into, err)
	}
	for _, f := range found {
		var field kjson.FieldError
		if !errors.As(f, &field) {
			return nil, f
		}
		path := field.FieldPath()
		nested := strings.ContainsAny(path, ".[")
		switch {
		case !strings.HasPrefix(f.Error(), "unknown "), strings.ContainsAny(path, " ("):
			return nil, f // a duplicate field, or a line that is not a field
		case notKnown == nil && !nested:
			return nil, f
		case notKnown == nil || strings.HasPrefix(path, "metadata."):
			unknown = append(unknown, withoutIndexes(path))
		}
	}
	return unknown, nil
}

// withoutIndexes returns a path without list indexes: spec.containers[].x.
func withoutIndexes(path string) string {
	var kept strings.Builder
	for i, part := range strings.Split(path, "[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "]")
			kept.WriteString("[]")
		}
		kept.WriteString(part)
	}
	return kept.String()
}

// wrongValue returns a decoder's error with the value's path, which errors about quantities and
// times lack.
func wrongValue(text []byte, into any, err error) error {
	o, notObject := snapshot.Decode(text)
	if notObject != nil {
		return notObject
	}
	if found := findWrong(o, reflect.TypeOf(into), ""); found != nil {
		return found
	}
	return err
}

// findWrong returns an error about the first value that cannot be decoded into its type.
func findWrong(value any, t reflect.Type, path string) error {
	if value == nil {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	decodes := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch {
	case decodes:
	case t.Kind() == reflect.Struct:
		fields, ok := value.(map[string]any)
		if !ok {
			return expected(path, "an object", value)
		}
		for i := range t.NumField() {
			if err := findInField(fields, t.Field(i), path); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() == reflect.Map:
		entries, ok := value.(map[string]any)
		if !ok {
			return expected(path, "an object", value)
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if err := findWrong(entries[key], t.Elem(), join(path, key)); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		elements, ok := value.([]any)
		if !ok {
			return expected(path, "a list", value)
		}
		for i, element := range elements {
			if err := findWrong(element, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	switch err := kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface()); {
	case err == nil:
		return nil
	case decodes:
		return fmt.Errorf("%s: invalid value %s: %w", path, text, err)
	}
	return expected(path, "a value of type "+t.Kind().String(), value)
}

// findInField returns an error about the value in a struct's field.
func findInField(fields map[string]any, f reflect.StructField, path string) error {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case f.Anonymous && name == "":
		return findWrong(fields, f.Type, path)
	case name == "" || name == "-":
		return nil
	}
	return findWrong(fields[name], f.Type, join(path, name))
}

func join(path, field string) string { return strings.TrimPrefix(path+"."+field, ".") }

// expected returns an error without the value, which may be a secret.
func expected(path, want string, got any) error {
	return fmt.Errorf("%s: expected %s, got %s", path, want, typeName(got))
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
