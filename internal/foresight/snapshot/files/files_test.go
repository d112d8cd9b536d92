package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// sink records the objects that are read.
type sink struct{ keys, texts []string }

func (s *sink) Add(resource, key string, object []byte) error {
	s.keys = append(s.keys, resource+" "+key)
	s.texts = append(s.texts, string(object))
	return nil
}

// read reads a text as standard input.
func read(t *testing.T, text string) (*files.Result, *sink, error) {
	t.Helper()
	got := &sink{}
	result, err := files.Read(t.Context(), snapshot.Kinds(), got,
		files.Options{Paths: []string{files.Stdin}, Stdin: strings.NewReader(text)})
	return result, got, err
}

const podText = `"metadata":{"name":"p","namespace":"shop","annotations":{"x":"y"}},"spec":{"nodeName":"a"}`

func TestObjectsOfEveryFormatAreRead(t *testing.T) {
	podAndNode := []string{"pods shop/p", "nodes a"}
	cases := map[string]struct {
		text    string
		keys    []string
		ignored map[string]int
	}{
		"a JSON object": {`{"apiVersion":"v1","kind":"Pod",` + podText + `}`, []string{"pods shop/p"}, nil},
		"a stream of JSON": {`{"apiVersion":"v1","kind":"Pod",` + podText + `}` + "\n" +
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`, podAndNode, nil},
		"kubectl get -o json": {`{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod",` + podText +
			`},{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}],"kind":"List","metadata":{"resourceVersion":""}}`,
			podAndNode, nil},
		"an array of objects and lists": {`[ {"apiVersion":"v1","kind":"PodList","items":[{` + podText + `}]},
			[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}] ]`, podAndNode, nil},
		"an array in YAML": {"- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n- apiVersion: v1\n  kind: Cart\n",
			[]string{"nodes a"}, map[string]int{"Cart": 1}},
		"a list of the API": {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{` +
			podText + `}]}`, []string{"pods shop/p"}, nil},
		"secrets too": {
			`{"kind":"List","items":[{"apiVersion":"v1","kind":"Secret"},{"apiVersion":"v1","kind":"Secret"},{"apiVersion":"v1","kind":"Pod",` + podText + `}]}`, []string{"pods shop/p"}, map[string]int{"Secret": 2}},
		"an unknown version": {`{"apiVersion":"v1","kind":"Pod",` + podText +
			`}{"apiVersion":"v9","kind":"Node","metadata":{"name":"a"}}`, []string{"pods shop/p"},
			map[string]int{"Node of v9": 1}},
		"items of another": {`{"apiVersion":"v1","kind":"Pod",` + podText +
			`}{"apiVersion":"example.com/v1","kind":"Cart","items":[{"a":1}]}`, []string{"pods shop/p"},
			map[string]int{"Cart": 1}},
		"a YAML document": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n", []string{"pods shop/p"},
			nil},
		"YAML documents": {
			"---\n# a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n--- # another\n" +
				"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n...\n", podAndNode, nil},
		"an inline document":  {"--- {apiVersion: v1, kind: Node, metadata: {name: a}}\n", []string{"nodes a"}, nil},
		"no namespace":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", []string{"pods default/p"}, nil},
		"kubectl get -o yaml": {kubectlYAML, podAndNode, nil},
		"with Windows' lines": {strings.ReplaceAll(kubectlYAML, "\n", "\r\n"), podAndNode, nil},
		"an indented list": {
			"apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: p, namespace: shop}\n" +
				"  - {apiVersion: v1, kind: Node, metadata: {name: a}}\n", podAndNode, nil},
		"a list in flow style": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: a}}]}",
			[]string{"nodes a"}, nil},
		"a list of nothing": {
			"apiVersion: v1\nitems: []\nkind: List\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n", []string{"nodes a"},
			nil},
		"two lists": {kubectlYAML + "---\n" + kubectlYAML, append(podAndNode, podAndNode...), nil},
		"a list in a list, as jq -s prints it": {
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}},` +
				`{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod",` + podText + `}]}]}`,
			[]string{"nodes a", "pods shop/p"}, nil},
		"lists of the API in lists in lists": {
			`{"items":[{"items":[{"apiVersion":"v1","items":[{` + podText + `}],"kind":"PodList"},{"apiVersion":"v1",` +
				`"kind":"NodeList","items":[{"metadata":{"name":"a"}}]}],"kind":"List"}],"kind":"List","apiVersion":"v1"}`,
			podAndNode, nil},
		"a list in a list in YAML": {
			"apiVersion: v1\nitems:\n- apiVersion: v1\n  items:\n  - apiVersion: v1\n    kind: Node\n    metadata:\n" +
				"      name: a\n  - apiVersion: v1\n    kind: Pod\n    metadata:\n      name: p\n  kind: List\nkind: List\n",
			[]string{"nodes a", "pods default/p"}, nil},
		"a list of the API with sorted fields": {
			`{"apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"kind":"NodeList","metadata":{}}`,
			[]string{"nodes a", "nodes b"}, nil},
		"the same in YAML": {
			"apiVersion: v1\nitems:\n- metadata:\n    name: a\n-\n  metadata:\n    name: b\nkind: NodeList\nmetadata: {}\n",
			[]string{"nodes a", "nodes b"}, nil},
		"sorted fields of an object with items": {
			`{"apiVersion":"example.com/v1","items":[{"a":1},"b",[2],null],"kind":"Cart"}{"apiVersion":"v1","kind":"Node",` +
				`"metadata":{"name":"a"}}`, []string{"nodes a"}, map[string]int{"Cart": 1}},
		"sorted fields of an object with items in YAML": {
			"apiVersion: example.com/v1\nitems:\n- a\n- b: 1\nkind: Cart\n---\napiVersion: v1\nkind: Node\n" +
				"metadata: {name: a}\n", []string{"nodes a"}, map[string]int{"Cart": 1}},
		"a kind that ends in List and is not a list": {
			`{"apiVersion":"example.com/v1","kind":"AllowList","metadata":{"name":"x"},"spec":{"items":[1]}}` +
				`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`, []string{"nodes a"},
			map[string]int{"AllowList": 1}},
		"pages of a list": {
			`{"apiVersion":"v1","kind":"NodeList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}` +
				`{"apiVersion":"v1","kind":"NodeList","metadata":{},"items":[{"metadata":{"name":"b"}}]}`,
			[]string{"nodes a", "nodes b"}, nil},
		"UTF-16": {utf16LE("apiVersion: v1\r\nkind: Pod\r\nmetadata: {name: p, namespace: shop}\r\n---\r\n" +
			"apiVersion: v1\r\nkind: Node\r\nmetadata: {name: a}\r\n"), podAndNode, nil},
		"JSON with a byte order mark": {"\ufeff" + `{"kind":"PodList","apiVersion":"v1","items":[{` + podText + `}]}`,
			[]string{"pods shop/p"}, nil},
		"items of no list": {
			"apiVersion: example.com/v1\nkind: Cart\nitems:\n- a\n- b\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n",
			[]string{"nodes a"}, map[string]int{"Cart": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, got, err := read(t, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.keys, got.keys); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if tc.ignored == nil {
				tc.ignored = map[string]int{}
			}
			if diff := cmp.Diff(tc.ignored, result.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			for _, text := range got.texts {
				if strings.Contains(text, `"x":"y"`) {
					t.Errorf("not stripped: %s", text)
				}
			}
		})
	}
}

// utf16LE encodes a text as PowerShell writes it.
func utf16LE(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return string(out)
}

// podWith returns a pod whose container has more fields.
func podWith(fields string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"containers":[{"name":"c",` +
		fields + `}]}}`
}

// kubectlYAML is a list printed by kubectl, with a block scalar that looks like items, and the kind
// after the items.
const kubectlYAML = `apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      note: |
        - apiVersion: v1
        kind: Secret
    name: p
    namespace: shop
  spec:
    containers:
    - args:
      - |-
        ---
        items:
      image: i
      name: c
- apiVersion: v1
  kind: Node
  metadata:
    name: a
kind: List
metadata:
  resourceVersion: ""
`

func TestFilesThatCannotBeReadAreRefused(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no object":          {"", "no object that a scheduler reads"},
		"secrets only":       {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "no object that a scheduler reads"},
		"JSON that ends":     {`{"apiVersion":"v1","kind":"Pod",`, "JSON: "},
		"wrong JSON":         {`{"apiVersion":"v1","kind":"Pod",}`, "JSON: "},
		"a list as JSON":     {"[1]", "line 1: expected an object, got a number"},
		"an array that ends": {`[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}},`, "line 1: JSON: unexpected EOF"},
		"arrays in arrays":   {strings.Repeat("[", 40) + `{"kind":"List"}`, "more than 32 lists"},
		"wrong YAML":         {"# nothing\n---\na: [\n", "line 3"},
		"no kind":            {"a: b\n", "no apiVersion and kind"},
		"no name":            {"apiVersion: v1\nkind: Pod\n", "no metadata.name"},
		"a null item":        {`{"kind":"List","items":[null]}`, "got null"},
		"an archive":         {"\x1f\x8bx", "not a gzip file"},
		"YAML that ends in a list": {kubectlYAML[:strings.Index(kubectlYAML, "- apiVersion: v1\n  kind: Node")],
			"line 1: a list without a kind"},
		"a message after a list": {kubectlYAML + "Error from server (NotFound): nodes \"b\" not found\n",
			`line 1: List: unknown field "Error from server (NotFound)"`},
		"a message after an object": {
			"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nerror: the server has no resource type x\n",
			`line 1: Node a: unknown field "error"`},
		"a message that is not a field": {kubectlYAML + "The connection to the server was refused\n", "YAML: line 28: "},
		"a message after JSON": {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}` + "\n==== START logs for x\n",
			"line 2: JSON: invalid character '='"},
		"a message after a custom resource": {
			"apiVersion: example.com/v1\nkind: Cart\nmetadata: {name: a}\nError from server (X): y\n",
			`line 1: Cart a: unknown field "Error from server (X)"`},
		"an error of the API server": {
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}` + "\n" +
				`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods is forbidden","code":403}`,
			"line 2: the API server returned an error: pods is forbidden"},
		"a list of nodes without items": {`{"apiVersion":"v1","kind":"List"}`, "a List without items"},
		"items of an object":            {`{"items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}],"kind":"Cart"}`, "items of a Cart, which is not a list"},
		"untyped items without a kind":  {`{"apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`, "no apiVersion and kind"},
		"part of a list":                {`{"apiVersion":"v1","kind":"NodeList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}`, "the NodeList is not complete"},
		"lists in lists in lists":       {strings.Repeat(`{"kind":"List","items":[`, 40), "more than 32 lists"},
		"fields twice":                  {`{"apiVersion":"v1","kind":"Node","kind":"Pod"}`, `duplicate field "kind"`},
		"fields twice below":            {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","name":"b"}}`, `line 1: Node b: duplicate field "metadata.name"`},
		"fields twice in YAML":          {"# x\napiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  name: b\n", `line 6: key "name" already set`},
		"a label that is not text": {"kind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n- apiVersion: v1\n  kind: Node\n" +
			"  metadata: {name: b, labels: {gpu: yes}}\n", "line 6: Node b: metadata.labels.gpu: expected a value of type string, got a boolean"},
		"a quantity with a comma": {podWith(`"resources":{"requests":{"cpu":"1,5"}}`),
			`line 1: Pod shop/p: spec.containers[0].resources.requests.cpu: invalid value "1,5": quantities must match`},
		"a list that is an object": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":{"name":"c"}}}`,
			"Pod p: spec.containers: expected a list, got an object"},
		"a number in quotes": {podWith(`"ports":[{"containerPort":"80"}]`),
			"spec.containers[0].ports[0].containerPort: expected a value of type int32, got a string"},
		"two versions": {
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n---\napiVersion: policy/v1beta1\nkind: " +
				"PodDisruptionBudget\nmetadata: {name: b}\n", "two versions"},
		"a document too long": {"a: b\nc:\n" + strings.Repeat("- x\n", 5<<20), "longer than 16 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(t, tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v (input is wrong: %t), want %q", err, problem.IsInvalid(err), tc.want)
			}
		})
	}
}

func TestDirectoriesAndSnapshotsAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b/pods.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n",
		"a.json":      `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`,
		"notes.txt":   "not YAML: [", "c.yml": "apiVersion: v1\nkind: Node\nmetadata: {name: c}\n",
		"d.csv": "sn,cpu_milli,memory_mib,gpu,model\nd,1,2,3,T4\n", "prices.csv": "not: [",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := &sink{}
	var pods snapshot.PodCounts
	result, err := files.Read(t.Context(), snapshot.Kinds(), got,
		files.Options{Paths: []string{dir, snapshotFile(t)}, Pods: &pods})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nodes a", "pods shop/p", "nodes c", "nodes d", "nodes s"}, got.keys); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, r := range result.Resources {
		kinds = append(kinds, r.Kind)
	}
	if diff := cmp.Diff([]string{"Node", "Pod"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if len(result.Headers) != 1 || result.Headers[0].Release != "v1.24.3" || pods.Pending != 1 {
		t.Errorf("headers %v, pods %v", result.Headers, pods)
	}
	for path, want := range map[string]bool{snapshotFile(t): true, dir: false, filepath.Join(dir, "a.json"): false,
		filepath.Join(dir, "none"): false} {
		if got := files.IsArchive(path); got != want {
			t.Errorf("%s is an archive: %t", path, got)
		}
	}
	if _, err := files.Read(t.Context(), snapshot.Kinds(), got,
		files.Options{Paths: []string{filepath.Join(dir, "none")}}); !problem.IsInvalid(err) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// oneNode are the objects of a snapshot with one node.
type oneNode struct{}

const nodeText = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"s"}}`

func (oneNode) Each(_ string, do func(string, []byte) error) error { return do("s", []byte(nodeText)) }

func snapshotFile(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	h := &snapshot.Header{Format: snapshot.Format, Version: snapshot.Version, Release: "v1.24.3",
		Resources: []snapshot.Resource{
			{Version: "v1", Resource: "nodes", Kind: "Node", Objects: 1, Bytes: int64(len(nodeText))},
		}}
	if err := archive.Write(&out, h, oneNode{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cluster.tar.gz")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// FuzzRead searches files that crash the reader.
func FuzzRead(f *testing.F) {
	f.Add(kubectlYAML)
	f.Add(`{"kind":"List","items":[{"apiVersion":"v1","kind":"Pod",` + podText + `}]}`)
	f.Add("sn,cpu_milli,memory_mib,gpu,model\nn,1,2,3,T4\n")
	f.Add("--- {}\nitems:\n- a\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = read(t, text) // an error is as good as objects
	})
}

func TestManifestsKeepAllFields(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.json": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"},"spec":{"template":{"spec":{"x":1}}}}`,
		"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a1}\n---\napiVersion: v1\nkind: Pod\nmetadata: " +
			"{name: a2}\n",
		"ignored.md": "text",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	add := func(o map[string]any) error {
		text, err := snapshot.Encode(o)
		got = append(got, string(text))
		return err
	}
	stdin := strings.NewReader("apiVersion: v1\nkind: Service\nmetadata: {name: c}\n")
	if _, err := files.Manifests(t.Context(), []string{dir, files.Stdin}, stdin, add); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a1"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a2"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"},"spec":{"template":{"spec":{"x":1}}}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"c"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := files.Manifests(t.Context(), []string{filepath.Join(dir, "missing")}, nil, add); err == nil ||
		!problem.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	if _, err := files.Manifests(t.Context(), []string{files.Stdin}, strings.NewReader(": ["), add); err == nil ||
		!problem.IsInvalid(err) || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("got %v", err)
	}
}

func TestFieldsThatAreNotKnownAreKeptAndNoted(t *testing.T) {
	text := podWith(`"surprise":{"x":1}`) + podWith(`"surprise":{"x":2},"new":true`)
	result, got, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fields that this pmk-sched does not know: Pod spec.containers[].new, Pod spec.containers[].surprise"}
	if diff := cmp.Diff(want, result.Doubts); diff != "" || len(got.keys) != 2 {
		t.Errorf("%d objects, notes (-want +got):\n%s", len(got.keys), diff)
	}
	var kept []map[string]any
	notes, err := files.Manifests(t.Context(), []string{files.Stdin}, strings.NewReader(text),
		func(o map[string]any) error { kept = append(kept, o); return nil })
	if diff := cmp.Diff(want, notes); err != nil || diff != "" {
		t.Fatalf("%v, notes (-want +got):\n%s", err, diff)
	}
	if text, err := snapshot.Encode(kept[1]); err != nil || !strings.Contains(string(text), `"new":true`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestATextOfKubectlWithoutALastLineBreakIsNoted(t *testing.T) {
	const text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  resourceVersion: \"1\"\nspec: {}"
	written := strings.Replace(text, "resourceVersion", "uid", 1)
	for text, want := range map[string]int{text: 1, text + "\n": 0, written: 0} {
		result, _, err := read(t, text)
		if err != nil || len(result.Doubts) != want {
			t.Errorf("%v, result %+v", err, result)
		}
	}
}

// Custom resources are kept where they do not leave the machine, or if their resource is named. A
// definition in the files, also after them, says how the kind is named.
func TestCustomResourcesOfFiles(t *testing.T) {
	const text = `apiVersion: v1
kind: Node
metadata: {name: a}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: rank, annotations: {note: x}}
spec: {minMember: 2, more: x}
---
apiVersion: example.com/v1
kind: Gateway
metadata: {name: g, namespace: shop, annotations: {note: x}}
spec: {more: x}
---
apiVersion: example.com/v1
kind: Rack
metadata: {name: r}
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [a.yaml]
---
apiVersion: example.com/v1
kind: Values
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Gateway, plural: gateways}}
`
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const group = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"rank","namespace":"default"},"spec":{"minMember":2}}`
	const gateway = `{"apiVersion":"example.com/v1","kind":"Gateway","metadata":{"name":"g","namespace":"shop"},"spec":{"more":"x"}}`
	cases := map[string]struct {
		options files.Options
		kept    map[string]string
		ignored map[string]int
		unnamed map[string]bool
	}{
		"written": {files.Options{}, map[string]string{"podgroups.scheduling.x-k8s.io": group},
			map[string]int{"Gateway": 1, "Rack": 1, "Kustomization": 1, "Values": 1},
			map[string]bool{"gateways.example.com": true, "racks.example.com": true}},
		"named": {files.Options{Resources: []string{"gateways.example.com"}},
			map[string]string{"podgroups.scheduling.x-k8s.io": group, "gateways.example.com": gateway},
			map[string]int{"Rack": 1, "Kustomization": 1, "Values": 1}, map[string]bool{"racks.example.com": true}},
		"in place": {files.Options{Custom: true},
			map[string]string{"podgroups.scheduling.x-k8s.io": group, "gateways.example.com": gateway,
				"racks.example.com": `{"apiVersion":"example.com/v1","kind":"Rack","metadata":{"name":"r"}}`},
			map[string]int{"Kustomization": 1, "Values": 1}, map[string]bool{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Paths = []string{file}
			kept := keeper{}
			result, err := files.Read(t.Context(), snapshot.Kinds(), kept, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			delete(kept, "nodes")
			if diff := cmp.Diff(tc.kept, map[string]string(kept)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.ignored, result.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unnamed, result.Unnamed); diff != "" {
				t.Errorf("unnamed (-want +got):\n%s", diff)
			}
		})
	}
}

// keeper keeps the last object of each resource.
type keeper map[string]string

func (k keeper) Add(resource, _ string, object []byte) error {
	k[resource] = string(object)
	return nil
}
