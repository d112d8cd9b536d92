package health

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const recorded = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: s, labels: {a: b}, resourceVersion: "1"}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - {name: main, image: "i:1", command: [run, --v=2]}
      - {name: side, image: "j:1"}
status: {replicas: 1}
`

func TestCompareFieldsNamesTheFieldsThatDiffer(t *testing.T) {
	const containers = "spec.template.spec.containers"
	for name, tc := range map[string]struct {
		from, to string
		want     []FieldDrift
	}{
		"equal":                {"", "", nil},
		"what the server sets": {`resourceVersion: "1"`, `resourceVersion: "2"`, nil},
		"the status":           {"status: {replicas: 1}", "status: {replicas: 7}", nil},
		"a number": {"replicas: 1\n", "replicas: 3\n",
			[]FieldDrift{{Path: "spec.replicas", Live: "3", Recorded: "1"}}},
		"a number in another form": {"replicas: 1\n", "replicas: 1.0\n", nil},
		"a field of a named item": {`image: "i:1"`, `image: "i:2"`,
			[]FieldDrift{{Path: containers + "[name=main].image", Live: `"i:2"`, Recorded: `"i:1"`}}},
		"a list without names": {"[run, --v=2]", "[run, --v=4]",
			[]FieldDrift{{Path: containers + "[name=main].command", Live: `["run","--v=4"]`, Recorded: `["run","--v=2"]`}}},
		"a named item less": {"      - {name: side, image: \"j:1\"}\n", "", []FieldDrift{
			{Path: containers + "[name=side]", Recorded: `{"image":"j:1","name":"side"}`}}},
		"a label": {"{a: b}", "{a: c, x/y: z}", []FieldDrift{{Path: "metadata.labels.a", Live: `"c"`, Recorded: `"b"`},
			{Path: "metadata.labels[x/y]", Live: `"z"`}}},
		"all labels": {", labels: {a: b}", "", []FieldDrift{{Path: "metadata.labels.a", Recorded: `"b"`}}},
		"all named items": {"\n      - {name: main, image: \"i:1\", command: [run, --v=2]}\n      - {name: side, image: \"j:1\"}",
			" []", []FieldDrift{{Path: containers, Live: "[]",
				Recorded: `[{"command":["run","--v=2"],"image":"i:1","name":"main"},{"image":"j:1","name":"side"}]`}}},
		"an item without a name": {`{name: side, image: "j:1"}`, "{}", []FieldDrift{{Path: containers,
			Live:     `[{"command":["run","--v=2"],"image":"i:1","name":"main"},{}]`,
			Recorded: `[{"command":["run","--v=2"],"image":"i:1","name":"main"},{"image":"j:1","name":"side"}]`}}},
		"two items of one name": {"name: side", "name: main", []FieldDrift{{Path: containers,
			Live:     `[{"command":["run","--v=2"],"image":"i:1","name":"main"},{"image":"j:1","name":"main"}]`,
			Recorded: `[{"command":["run","--v=2"],"image":"i:1","name":"main"},{"image":"j:1","name":"side"}]`}}},
		"text instead of a map": {"{a: b}", "x", []FieldDrift{{Path: "metadata.labels", Live: `"x"`, Recorded: `{"a":"b"}`}}},
		"a map instead of text": {`image: "j:1"`, "image: {a: b}", []FieldDrift{{Path: containers + "[name=side].image", Live: `{"a":"b"}`, Recorded: `"j:1"`}}},
		"a map that is new":     {"replicas: 1\n", "replicas: 1\n  extra: {a: {b: c}}\n", []FieldDrift{{Path: "spec.extra.a", Live: `{"b":"c"}`}}},
		"a map that is new, deeper": {"    spec:\n", "    extra: {a: b}\n    spec:\n",
			[]FieldDrift{{Path: "spec.template.extra", Live: `{"a":"b"}`}}},
		"signs":          {"{a: b}", `{a: "<&>"}`, []FieldDrift{{Path: "metadata.labels.a", Live: `"<&>"`, Recorded: `"b"`}}},
		"an empty value": {"replicas: 1\n", "replicas: 1\n  extra: []\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := CompareFields(object(t, strings.Replace(recorded, tc.from, tc.to, 1)), object(t, recorded))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompareFieldsDoesNotShowSecretsAndConfiguration(t *testing.T) {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		text := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: s}\ndata: {key: before}\n"
		got := CompareFields(object(t, strings.Replace(text, "before", "after", 1)), object(t, text))
		if diff := cmp.Diff([]FieldDrift{{Path: "data.key"}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		labelled := object(t, text)
		labelled.SetLabels(map[string]string{"a": "b"})
		want := []FieldDrift{{Path: "metadata.labels.a", Live: `"b"`}}
		if diff := cmp.Diff(want, CompareFields(labelled, object(t, text))); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", kind, diff)
		}
		if text := got[0].String(); text != "data.key was changed" {
			t.Errorf("%s: %q", kind, text)
		}
	}
}

func managed(manager, subresource, fields string, at time.Time) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	if !at.IsZero() {
		entry.Time = &metav1.Time{Time: at}
	}
	return entry
}

func TestCompareFieldsNamesWhoChangedThem(t *testing.T) {
	first, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	const (
		replicas = `{"f:spec":{"f:replicas":{}}}`
		image    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`
		env      = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{".":{},"f:a":{},"f:b":{},"k:x":{},"k:{\"name\":\"a\"}":{},` +
			`"k:{\"name\":\"b\"}":{},"k:{\"name\":\"main\"}":{},"k:{\"name\":\"side\"}":{".":{},"f:env":{"f:a":{}}}}}}}}`
		command = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:command":{}}}}}}}`
	)
	for name, tc := range map[string]struct {
		from, to string
		managed  []metav1.ManagedFieldsEntry
		manager  string
		at       *time.Time
	}{
		"a field": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("kubectl-edit", "", replicas, first)}, "kubectl-edit", &first},
		"through a subresource": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("kubectl", "scale", replicas, first)}, "kubectl", &first},
		"the last of two": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("a", "", replicas, last), managed("b", "", replicas, first)}, "a", &last},
		"not of the status": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("kube-controller-manager", "status", replicas, first)}, "", nil},
		"without a time": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("old", "", replicas, time.Time{})}, "old", nil},
		"a named item": {`image: "i:1"`, `image: "i:2"`,
			[]metav1.ManagedFieldsEntry{managed("kubectl-set", "", image, first)}, "kubectl-set", &first},
		"a list that is set as a whole": {"[run, --v=2]", "[run]",
			[]metav1.ManagedFieldsEntry{managed("kubectl-patch", "", command, first)}, "kubectl-patch", &first},
		"another field": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("kubectl-set", "", image, first)}, "", nil},
		"another item": {`image: "j:1"`, `image: "j:2"`,
			[]metav1.ManagedFieldsEntry{managed("kubectl-set", "", image, first)}, "", nil},
		"fields that cannot be read": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("a", "", "[]", first)}, "", nil},
		"after others": {"replicas: 1\n", "replicas: 3\n", []metav1.ManagedFieldsEntry{{Manager: "none"},
			managed("status", "status", replicas, last), managed("bad", "", "[]", last), managed("other", "", image, last),
			managed("untimed", "", replicas, time.Time{}), managed("late", "", replicas, last),
			managed("a", "", replicas, first)}, "late", &last},
		"two without a time": {"replicas: 1\n", "replicas: 3\n", []metav1.ManagedFieldsEntry{
			managed("a", "", replicas, time.Time{}), managed("b", "", replicas, time.Time{})}, "a", nil},
		"with a time before one without": {"replicas: 1\n", "replicas: 3\n", []metav1.ManagedFieldsEntry{
			managed("a", "", replicas, first), managed("b", "", replicas, time.Time{})}, "a", &first},
		"a field that contains it": {"replicas: 1\n", "replicas: 3\n",
			[]metav1.ManagedFieldsEntry{managed("a", "", `{"f:spec":{}}`, first)}, "a", &first},
		"fields that it contains": {"      - {name: side, image: \"j:1\"}\n", "      - {name: side, image: \"j:1\", env: {a: b}}\n",
			[]metav1.ManagedFieldsEntry{managed("a", "", env, first)}, "a", &first},
		"a field that was removed by a map": {"  replicas: 1\n", "",
			[]metav1.ManagedFieldsEntry{managed("a", "", image, first)}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, strings.Replace(recorded, tc.from, tc.to, 1))
			live.SetManagedFields(tc.managed)
			got := CompareFields(live, object(t, recorded))
			if len(got) != 1 || got[0].Manager != tc.manager || !cmp.Equal(got[0].Time, tc.at) {
				t.Errorf("got %+v, want manager %q at %v", got, tc.manager, tc.at)
			}
		})
	}
}

func TestFieldDriftIsOneLine(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, field := range map[string]FieldDrift{
		"spec.replicas is 3, recorded is 1 (kubectl at 2026-01-01T00:00:00Z)": {Path: "spec.replicas", Live: "3",
			Recorded: "1", Manager: "kubectl", Time: &at},
		"metadata.labels.a is \"b\", and is not recorded (x)": {Path: "metadata.labels.a", Live: `"b"`,
			Manager: "x"},
		"metadata.labels.a is not set, recorded is \"b\"": {Path: "metadata.labels.a", Recorded: `"b"`},
	} {
		if got := field.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
