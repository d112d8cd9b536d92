package schema_test

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// A ConfigMap has at most 1 MiB.
func TestSizeOfAConfiguration(t *testing.T) {
	const most = 1 << 20
	padded := func(size int) []byte {
		text := v1 + "#"
		return []byte(text + strings.Repeat("x", size-len(text)))
	}
	if _, err := schema.Read("f.yaml", padded(most), false); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	_, err := schema.Read("f.yaml", padded(most+1), false)
	if err == nil || !strings.Contains(err.Error(), "1048577 bytes exceed the size of a ConfigMap (1 MiB)") {
		t.Errorf("got %v for one byte more", err)
	}
}

func TestDocumentsThatAreIdentified(t *testing.T) {
	cases := map[string]struct {
		source, api string
		policy      bool
	}{
		"v1":                 {v1, "v1", false},
		"v1beta1":            {strings.Replace(v1, "/v1", "/v1beta1", 1), "v1beta1", false},
		"a legacy API":       {v1alpha2, "v1alpha2", false},
		"a Policy":           {"apiVersion: v1\nkind: Policy\n", "", true},
		"a Policy as JSON":   {`{"kind": "Policy", "apiVersion": "v1"}`, "", true},
		"version after kind": {kind + "apiVersion: kubescheduler.config.k8s.io/v1beta3\n", "v1beta3", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc, err := schema.Read("f.yaml", []byte(tc.source), false)
			if err != nil {
				t.Fatal(err)
			}
			if doc.Policy != tc.policy || !tc.policy && doc.API.Name != tc.api {
				t.Errorf("got config API %q, a Policy %t", doc.API.Name, doc.Policy)
			}
			if want := strings.HasPrefix(tc.source, "{"); doc.Flow != want {
				t.Errorf("JSON: got %t, want %t", doc.Flow, want)
			}
		})
	}
}

func TestDocumentsThatAreNotIdentified(t *testing.T) {
	cases := map[string]struct{ source, want string }{
		"no apiVersion": {kind, "f.yaml:1:1: apiVersion is missing"},
		"no kind":       {"apiVersion: kubescheduler.config.k8s.io/v1\n", "f.yaml:1:1: kind is missing"},
		"neither":       {"a: 1\n", "f.yaml:1:1: apiVersion is missing"},
		"an empty ConfigMap": {"apiVersion: v1\nkind: ConfigMap\n",
			"f.yaml:2:7: the ConfigMap has no key with a configuration"},
		"another kind": {"apiVersion: v1\nkind: Pod\n", `f.yaml:2:7: unexpected kind "Pod"`},
		"another group": {"apiVersion: example.com/v1\n" + kind,
			`f.yaml:1:13: unexpected apiVersion "example.com/v1": must be in group kubescheduler.config.k8s.io`},
		"another version": {"apiVersion: kubescheduler.config.k8s.io/v2\n" + kind,
			`f.yaml:1:13: unknown config API "kubescheduler.config.k8s.io/v2"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schema.Read("f.yaml", []byte(tc.source), false)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// A decoder reads an empty element of a list of objects as {}.
func TestEmptyElementsAreObjects(t *testing.T) {
	doc, err := schema.Read("f.yaml", []byte(v1+"profiles:\n- \n- pluginConfig:\n  - name: A\n  - # none\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, note := range doc.Notes {
		if !note.Warning {
			t.Errorf("%s is not a warning", note.Message)
		}
		place, _, _ := strings.Cut(note.Message, " ")
		notes = append(notes, place)
	}
	if got := strings.Join(notes, " "); got != "profiles[0] profiles[1].pluginConfig[1]" {
		t.Errorf("got warnings for %s", got)
	}
}
