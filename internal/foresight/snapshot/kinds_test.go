package snapshot_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// describe returns a kind in one line.
func describe(k *snapshot.Kind) string {
	line := fmt.Sprintf("%s %s %s", k.GroupResource(), k.Name, strings.Join(k.Versions, ","))
	for i, set := range []bool{k.Namespaced, k.Required, k.Custom, k.External} {
		if set {
			line += []string{" namespaced", " required", " custom", " external"}[i]
		}
	}
	return line
}

func TestKinds(t *testing.T) {
	var lines strings.Builder
	for _, k := range snapshot.Kinds() {
		lines.WriteString(describe(k) + "\n")
	}
	golden.Equal(t, "testdata/kinds.txt", lines.String())
}

func TestFindTellsGroupsAndVersionsApart(t *testing.T) {
	for _, tc := range []struct{ apiVersion, kind, resource, version string }{
		{"v1", "Pod", "pods", "v1"}, {"v2", "Pod", "", ""}, {"apps/v1", "Pod", "", ""}, {"v1", "ReplicaSet", "", ""},
		{"apps/v1", "ReplicaSet", "replicasets.apps", "v1"},
		{"policy/v1beta1", "PodDisruptionBudget", "poddisruptionbudgets.policy", "v1beta1"},
		{"scheduling.k8s.io/v1alpha3", "PodGroup", "podgroups.scheduling.k8s.io", "v1alpha3"},
		{"scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups.scheduling.x-k8s.io", "v1alpha1"},
		{"", "", "", ""},
	} {
		kind, version := snapshot.FindOf(snapshot.Kinds(), map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind})
		resource := ""
		if kind != nil {
			resource = kind.GroupResource()
		}
		if resource != tc.resource || version != tc.version {
			t.Errorf("%s %s: got %q, %q", tc.apiVersion, tc.kind, resource, version)
		}
	}
}

func TestCustomKindsAreThoseThatNoSchedulerReads(t *testing.T) {
	const malformed = "must be PLURAL.GROUP, such as nodemetrics.example.com"
	for name, want := range map[string]string{
		"nodemetrics.example.com":       "nodemetrics.example.com   custom external",
		"endpoints":                     "endpoints   custom",
		"secrets.example.com":           "secrets.example.com   custom external",
		"podgroups.scheduling.x-k8s.io": "podgroups.scheduling.x-k8s.io   custom external",
		"secrets":                       "secrets are never part of a snapshot",
		"configmaps":                    "configmaps are never part of a snapshot",
		"events":                        "events are never part of a snapshot",
		"serviceaccounts":               "serviceaccounts are never part of a snapshot",
		"pods":                          "pods are part of every snapshot",
		"replicasets.apps":              "replicasets.apps are part of every snapshot",
		"":                              `invalid resource "": ` + malformed,
		".example.com":                  `invalid resource ".example.com": ` + malformed,
		"a/b":                           `invalid resource "a/b": ` + malformed,
		"*.example.com":                 `invalid resource "*.example.com": ` + malformed,
		"a b":                           `invalid resource "a b": ` + malformed,
	} {
		kind, err := snapshot.CustomKind(name)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = describe(kind)
			if !kind.HasVersion("v9") {
				t.Errorf("%s has not every version", name)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// Only metadata of objects of a custom kind is left out.
func TestCustomObjectsKeepTheirFields(t *testing.T) {
	kind, err := snapshot.CustomKind("nodemetrics.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"apiVersion":"example.com/v1","kind":"NodeMetric","metadata":{"name":"a","annotations":{"a":"1"},"generation":7},` +
			`"spec":{"a":[1]},"usage":7,"none":null}`: `{"apiVersion":"example.com/v1","kind":"NodeMetric",` +
			`"metadata":{"name":"a"},"spec":{"a":[1]},"usage":7}`,
		`{"usage":7,"metadata":"x"}`: `{"usage":7}`,
	} {
		if got := encode(t, kind.Strip(decode(t, text))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestExternalGroups(t *testing.T) {
	for apiVersion, want := range map[string]bool{
		"example.com/v1": true, "scheduling.x-k8s.io/v1alpha1": true, "topology.node.k8s.io/v1alpha1": true,
		"v1": false, "apps/v1": false, "storage.k8s.io/v1": false, "resource.k8s.io/v1": false,
		"rbac.authorization.k8s.io/v1": false, "kubescheduler.config.k8s.io/v1": false, "pmk-sched.io/v1alpha1": false,
	} {
		if got := snapshot.IsExternal(apiVersion); got != want {
			t.Errorf("%s: %t", apiVersion, got)
		}
	}
}

func TestExternalKindsAreFoundByTheirDefinitions(t *testing.T) {
	definitions := []map[string]any{
		decode(t, `{"spec":{"group":"example.org","names":{"kind":"Mouse","plural":"rats"},"scope":"Namespaced"}}`),
		decode(t, `{"spec":{"group":"example.com","names":{"kind":"Cat","plural":"kittens"},"scope":"Namespaced"}}`),
		decode(t, `{"spec":{"group":"example.com","names":{"kind":"Mouse","plural":"mice"},"scope":"Cluster"}}`),
		decode(t, `{"spec":{"group":"example.com","names":{"kind":"Dog","plural":"hounds"},"scope":"Namespaced"}}`),
	}
	for _, tc := range []struct{ object, want, version string }{
		{`{"apiVersion":"example.com/v2","kind":"Mouse","metadata":{"namespace":"a"}}`,
			"mice.example.com Mouse  custom external", "v2"},
		{`{"apiVersion":"example.com/v1","kind":"Dog","metadata":{"name":"a"}}`,
			"hounds.example.com Dog  namespaced custom external", "v1"},
		{`{"apiVersion":"example.com/v1","kind":"Class","metadata":{"namespace":"a"}}`,
			"classes.example.com Class  namespaced custom external", "v1"},
		{`{"apiVersion":"example.com/v1","kind":"Policy","metadata":{"name":"a"}}`,
			"policies.example.com Policy  custom external", "v1"},
		{`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"ElasticQuota"}`,
			"elasticquotas.scheduling.x-k8s.io ElasticQuota v1alpha1 namespaced external", "v1alpha1"},
		{`{"apiVersion":"scheduling.x-k8s.io/v1","kind":"ElasticQuota"}`,
			"elasticquotas.scheduling.x-k8s.io ElasticQuota  custom external", "v1"},
	} {
		kind, version := snapshot.ExternalKind(decode(t, tc.object), definitions)
		if got := describe(kind); got != tc.want || version != tc.version {
			t.Errorf("%s: got %q, %s", tc.object, got, version)
		}
	}
}

func TestPodsAreCountedByTheirState(t *testing.T) {
	var got snapshot.PodCounts
	for _, pod := range []string{
		`{"spec":{"nodeName":"a"},"status":{"phase":"Succeeded"}}`, `{"spec":{},"status":{"phase":"Failed"}}`,
		`{"spec":{"nodeName":"a"},"status":{"phase":"Failed"}}`, `{"spec":{"nodeName":"a"},"status":{"phase":"Running"}}`,
		`{"spec":{"nodeName":"a"},"status":{"phase":"Pending"}}`, `{"spec":{"nodeName":"a"}}`, `{"spec":{"nodeName":"a"}}`,
		`{"status":{"phase":"Pending"}}`, `{}`, `{"spec":3,"status":[]}`, `{"spec":{"nodeName":""}}`,
	} {
		got.Count(decode(t, pod))
	}
	if diff := cmp.Diff(snapshot.PodCounts{Running: 4, Pending: 4, Finished: 3}, got); diff != "" {
		t.Error(diff)
	}
}

func TestUID(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"uid":"1-2"}}`: "1-2", `{"metadata":{"uid":7}}`: "", `{"metadata":[]}`: "", `{}`: "",
	} {
		if got := snapshot.UID(decode(t, text)); got != want {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestResourcesHaveTheNamesOfTheirKinds(t *testing.T) {
	r := snapshot.Resource{Group: "apps", Version: "v1", Resource: "replicasets"}
	core := snapshot.Resource{Version: "v1", Resource: "pods"}
	got := []string{r.GroupResource(), core.GroupResource(),
		snapshot.APIVersion("apps", "v1"), snapshot.APIVersion("", "v1")}
	if diff := cmp.Diff([]string{"replicasets.apps", "pods", "apps/v1", "v1"}, got); diff != "" {
		t.Error(diff)
	}
}

// An annotation is kept if nothing but numbers, indices and truth values are in it.
func TestAnnotationsOfPodsAreNumbers(t *testing.T) {
	kind := kindNamed(t, "Pod")
	for value, kept := range map[string]bool{
		"7": true, "0,3": true, " 0 , 3 ": true, "true": true, "false": true, "9223372036854775807": true,
		"92233720368547758070": false,
		"":                     false, " ": false, "1,": false, ",1": false, "1,,2": false, "-1": false, "1.5": false,
		"7a": false, "a7": false, "True": false, "1,true": false, "1;2": false,
	} {
		object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/a": value}}}
		want := map[string]any{"metadata": map[string]any{}}
		if kept {
			want = object
		}
		if diff := cmp.Diff(want, kind.Strip(object)); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
	// Other kinds have no such annotations.
	node := decode(t, `{"metadata":{"name":"a","annotations":{"example.com/a":"7"}}}`)
	if got := encode(t, kindNamed(t, "Node").Strip(node)); got != `{"metadata":{"name":"a"}}` {
		t.Errorf("a node keeps %s", got)
	}
}

func TestObjectsAreDecodedWhole(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":9007199254740993,"b":1.50}`: "", " {} \n": "",
		"null": "expected an object, got null", "{} {}": "more than one object", `{}x`: "more than one object",
		"{} null": "more than one object",
	} {
		object, err := snapshot.Decode([]byte(text))
		if want != "" {
			if object != nil || err == nil || err.Error() != want {
				t.Errorf("%s: got %v, %v", text, object, err)
			}
			continue
		}
		if err != nil || encode(t, object) != strings.TrimSpace(text) {
			t.Errorf("%s: got %v, %v", text, object, err)
		}
	}
	for _, text := range []string{"", "{", "[]", "7"} {
		if object, err := snapshot.Decode([]byte(text)); err == nil {
			t.Errorf("%q: got %v", text, object)
		}
	}
	if got := encode(t, map[string]any{"b": "<&>", "a": json.Number("1")}); got != `{"a":1,"b":"<&>"}` {
		t.Errorf("got %s", got)
	}
	if text, err := snapshot.Encode(map[string]any{"a": func() {}}); err == nil {
		t.Errorf("a function became %s", text)
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	object, err := snapshot.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

func encode(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := snapshot.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
