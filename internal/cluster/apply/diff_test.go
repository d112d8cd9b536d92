package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(kind string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"name": "x", "namespace": "a", "uid": "1", "resourceVersion": "7",
			"managedFields": []any{}},
		"data": data, "status": map[string]any{"seen": "1"},
	}}
}

func TestDiffShowsWhatDiffersWithoutWhatTheServerFillsIn(t *testing.T) {
	live := object("ConfigMap", map[string]any{"k": "old"})
	got, err := Diff(live, object("ConfigMap", map[string]any{"k": "new"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `diff live/ConfigMap/a/x wanted/ConfigMap/a/x
--- live/ConfigMap/a/x
+++ wanted/ConfigMap/a/x
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  k: old
+  k: new
 kind: ConfigMap
 metadata:
   name: x
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if live.GetResourceVersion() != "7" {
		t.Error("the object that was compared is changed")
	}
}

func TestDiffMasksSecrets(t *testing.T) {
	kubeconfig := "users:\n- user:\n    client-key-data: S0VZ\n    token: \"abc\"\n    password: pw\nextenders:\n- " +
		"tlsConfig: {keyData: S0VZ}\n"
	cases := map[string]struct {
		live, wanted *unstructured.Unstructured
		want         string
	}{
		"new Secret": {nil, object("Secret", map[string]any{"tls.key": "S0VZ"}), "+  tls.key: '***'"},
		"changed Secret": {object("Secret", map[string]any{"tls.key": "S0VZ"}),
			object("Secret", map[string]any{"tls.key": "abc"}), "+  tls.key: '*** (after)'"},
		"kubeconfig in a ConfigMap": {nil, object("ConfigMap", map[string]any{"kubeconfig": kubeconfig}),
			"client-key-data: ***"},
		"kubeconfig in a ConfigMap, gone": {object("ConfigMap", map[string]any{"kubeconfig": kubeconfig}),
			object("ConfigMap", map[string]any{}), "token: ***"},
		"kubeconfig in a ConfigMap, JSON?": {nil,
			object("ConfigMap", map[string]any{"kubeconfig": `{"client-key-data": "S0VZ"}`}), `"client-key-data": ***`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Diff(tc.live, tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("diff does not hold %q:\n%s", tc.want, got)
			}
			for _, secret := range []string{"S0VZ", "abc", "pw"} {
				if strings.Contains(got, secret) {
					t.Errorf("diff shows %q:\n%s", secret, got)
				}
			}
		})
	}
}
