//go:build linux

package gitops

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Example returns the objects in a file of examples/gitops.
func Example(t testing.TB, name string) []*unstructured.Unstructured {
	t.Helper()
	return Objects(t, filepath.Join(run.Root(), "examples", "gitops", name))
}

// Objects returns the objects in a file of YAML documents.
func Objects(t testing.TB, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4<<10)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("read %s: %v", file, err)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

// Set sets a field of an object, by its path.
func Set(t testing.TB, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
