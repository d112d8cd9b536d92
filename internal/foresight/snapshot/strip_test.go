package snapshot_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// readObjects returns the objects of a YAML file.
func readObjects(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object, err := snapshot.Decode(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// equalObjects compares objects with a golden file, as YAML.
func equalObjects(t *testing.T, file string, objects []map[string]any) {
	t.Helper()
	var documents []string
	for _, object := range objects {
		asJSON, err := snapshot.Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.JSONToYAML(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(asYAML))
	}
	golden.Equal(t, file, strings.Join(documents, "---\n"))
}

// strip strips an object of a known kind.
func strip(t *testing.T, object map[string]any) (*snapshot.Kind, map[string]any) {
	t.Helper()
	apiVersion, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	kind, _ := snapshot.Find(snapshot.Kinds(), apiVersion, name)
	if kind == nil {
		t.Fatalf("no scheduler reads %s %s", apiVersion, name)
	}
	return kind, kind.Strip(object)
}

func TestStripKeepsWhatSchedulersRead(t *testing.T) {
	var stripped []map[string]any
	for _, object := range readObjects(t, filepath.Join("testdata", "objects.yaml")) {
		_, kept := strip(t, object)
		stripped = append(stripped, kept)
	}
	equalObjects(t, "testdata/stripped.yaml", stripped)
}

// Every value in the test's objects that must not leave a cluster contains this word.
const secret = "SECRET"

func TestNothingSecretIsLeft(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), secret); n < 40 {
		t.Fatalf("the objects have only %d values that must not leave a cluster", n)
	}
	for _, object := range readObjects(t, filepath.Join("testdata", "objects.yaml")) {
		kind, kept := strip(t, object)
		asJSON, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(asJSON), secret) {
			t.Errorf("%s: %s", kind.Name, asJSON)
		}
	}
}

func TestObjectsWithOtherTypesAreStrippedToNothing(t *testing.T) {
	cases := map[string]string{
		"a list as metadata":  `{"apiVersion":"v1","kind":"Pod","metadata":[1],"spec":{"nodeName":"a"}}`,
		"a text as spec":      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":"x"}`,
		"texts as containers": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":3},"spec":{"containers":["x",{"name":"c"}]}}`,
		"null":                `{"apiVersion":"v1","kind":"Pod","metadata":null,"spec":null}`,
	}
	want := map[string]string{
		"a list as metadata":  `{"apiVersion":"v1","kind":"Pod","metadata":[],"spec":{"nodeName":"a"}}`,
		"a text as spec":      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		"texts as containers": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`,
		"null":                `{"apiVersion":"v1","kind":"Pod"}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := snapshot.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			_, kept := strip(t, object)
			got, err := snapshot.Encode(kept)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[name], string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeyNeedsANameAndANamespace(t *testing.T) {
	pod, node := kindNamed(t, "Pod"), kindNamed(t, "Node")
	cases := map[string]struct {
		kind     *snapshot.Kind
		metadata map[string]any
		want     string // empty: an error
	}{
		"namespaced":          {pod, map[string]any{"namespace": "a", "name": "b"}, "a/b"},
		"no namespace":        {pod, map[string]any{"name": "b"}, ""},
		"no name":             {pod, map[string]any{"namespace": "a"}, ""},
		"cluster":             {node, map[string]any{"name": "b"}, "b"},
		"cluster, no name":    {node, nil, ""},
		"cluster, number":     {node, map[string]any{"name": 3}, ""},
		"namespace not asked": {node, map[string]any{"namespace": "a", "name": "b"}, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.kind.Key(map[string]any{"metadata": tc.metadata})
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func kindNamed(t *testing.T, name string) *snapshot.Kind {
	t.Helper()
	for _, k := range snapshot.Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no kind %s", name)
	return nil
}
