package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// thing returns an object with the fields.
func thing(kind string, fields map[string]any) *unstructured.Unstructured {
	fields["kind"] = kind
	return &unstructured.Unstructured{Object: fields}
}

func TestSecretsAreRedactedInText(t *testing.T) {
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"Secret": {thing("Secret", map[string]any{"data": map[string]any{"a": "c2VjcmV0", "b": int64(1)}}),
			"data:\n  a: <redacted>\n  b: <redacted>\nkind: Secret\n"},
		"Secret with plain text": {thing("Secret", map[string]any{"stringData": map[string]any{"a": "secret"}}),
			"kind: Secret\nstringData:\n  a: <redacted>\n"},
		"Secret without data": {thing("Secret", map[string]any{}), "kind: Secret\n"},
		"ConfigMap": {thing("ConfigMap", map[string]any{"data": map[string]any{"a": "user: u\ntoken: secret\nb: c", "n": true}}),
			"data:\n  a: |-\n    user: u\n    token: <redacted>\n    b: c\n  \"n\": <redacted>\nkind: ConfigMap\n"},
		"quotes": {thing("ConfigMap", map[string]any{"data": map[string]any{
			"a": `{"keyData":"a \"b\", c","url":"u", "token": "d"}`, "b": `{'password': 'it''s, d','url':'u'}`, "c": `{token: a, b: c}`}}),
			"data:\n  a: '{\"keyData\":<redacted>,\"url\":\"u\", \"token\": <redacted>}'\n  b: '{''password'': <redacted>,''url'':''u''}'\n" +
				"  c: '{token: <redacted>'\nkind: ConfigMap\n"},
		"text with spaces": {thing("ConfigMap", map[string]any{"data": map[string]any{"a": "password: a, b}c d\nurl: u\n"}}),
			"data:\n  a: |\n    password: <redacted>\n    url: u\nkind: ConfigMap\n"},
		"lines": {thing("ConfigMap", map[string]any{"data": map[string]any{
			"a": "- token: |\n    one\n\n    two\n  url: u\n- password: one\n   two\n", "b": "token:\n  secret\nurl: u\n",
			"c": "'a.token':\tone\n two\ntokens: 3\nkeyData: \"one\n  two\"\nurl: u\n"}}),
			"data:\n  a: |\n    - token: <redacted>\n      url: u\n    - password: <redacted>\n" +
				"  b: |\n    token: <redacted>\n    url: u\n" +
				"  c: |\n    'a.token': <redacted>\n    tokens: 3\n    keyData: <redacted>\n    url: u\nkind: ConfigMap\n"},
		"another kind": {thing("Service", map[string]any{"data": map[string]any{"token": "token: a"}}),
			"data:\n  token: 'token: a'\nkind: Service\n"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.object.DeepCopy()
			got, err := manifest.YAML([]*unstructured.Unstructured{c.object})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.object); diff != "" {
				t.Errorf("the object has changed:\n%s", diff)
			}
		})
	}
}

func TestObjectThatIsNotYAMLIsAnError(t *testing.T) {
	o := thing("Thing", map[string]any{"metadata": map[string]any{"name": "x"}, "spec": func() {}})
	if got, err := manifest.YAML([]*unstructured.Unstructured{o}); err == nil || got != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestConfigurationOfAScheduler(t *testing.T) {
	file := map[string]any{"data": map[string]any{"s.yaml": "kind: K"}}
	other := map[string]any{"data": map[string]any{"other.yaml": "kind: O"}}
	wrong := map[string]any{"data": map[string]any{"s.yaml": int64(1)}}
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"after others": {[]*unstructured.Unstructured{thing("ConfigMap", other), thing("ConfigMap", wrong),
			thing("ConfigMap", file)}, "kind: K"},
		"another kind": {[]*unstructured.Unstructured{thing("Secret", map[string]any{"data": file["data"]})}, ""},
		"another key":  {[]*unstructured.Unstructured{thing("ConfigMap", other)}, ""},
		"no text":      {[]*unstructured.Unstructured{thing("ConfigMap", wrong)}, ""},
		"no objects":   {nil, ""},
	} {
		got, err := manifest.Configuration(c.objects, "s")
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestSignedByIsReadFromTheObjects(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	for _, want := range []string{"", "sha256:12"} {
		s.SignedBy = want
		if got := manifest.SignedBy(objects(t, s)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Objects of a revision may be damaged, or of other kinds.
func TestShortageChangesDeploymentsOnTheHostNetworkOnly(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Replicas = 3
	d := deployment(t, s)
	daemons, unset := d.DeepCopy(), d.DeepCopy()
	daemons.SetKind("DaemonSet")
	unstructured.RemoveNestedField(unset.Object, "spec", "replicas")
	given := []*unstructured.Unstructured{daemons, unset, d}
	got, err := manifest.TolerateShortage(given, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != daemons || got[1] != unset || strategy(t, got[2]) != [2]int64{0, 2} {
		t.Errorf("got %v", got)
	}
	for name, path := range map[string][]string{
		"a field of another type": {"spec", "replicas"}, "no place for the number": {"spec", "strategy"},
	} {
		damaged := d.DeepCopy()
		if err := unstructured.SetNestedField(damaged.Object, "text", path...); err != nil {
			t.Fatal(err)
		}
		if got, err := manifest.TolerateShortage([]*unstructured.Unstructured{damaged}, 1); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
