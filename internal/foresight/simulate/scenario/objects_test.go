package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

func TestManifestsAreCompleted(t *testing.T) {
	var manifests []map[string]any
	for _, text := range []string{
		`{"apiVersion":"example.com/v1","kind":"Quota","metadata":{"name":"q"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","annotations":{"a":"b"},"resourceVersion":"7"},"spec":{"priorityClassName":"high"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bound","namespace":"shop","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"a"}}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":10}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"quotas.example.com"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"status":{"capacity":{"cpu":"4"}}}`,
	} {
		manifests = append(manifests, decode(t, text))
	}
	objects, err := scenario.NewObjects(manifests)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	err = objects.Each(func(_ *snapshot.Kind, _ string, o map[string]any) error {
		got = append(got, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]any
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","labels":{"kubernetes.io/hostname":"a"}},"status":{"allocatable":{"cpu":"4","pods":"110"},"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","namespace":"default","annotations":{"a":"b"},"creationTimestamp":"2000-01-01T00:00:01Z"},"spec":{"priorityClassName":"high"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bound","namespace":"shop","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"a"}}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":10}`,
	} {
		want = append(want, decode(t, text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"shop/bound": "a"}, objects.Bound); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if len(objects.Others) != 2 || objects.Others[0]["kind"] != "CustomResourceDefinition" {
		t.Errorf("others %v", objects.Others)
	}
	if manifests[1]["metadata"].(map[string]any)["resourceVersion"] == nil {
		t.Error("the manifest was changed")
	}
}

// The fields that a kubelet or an API server would set are only added.
func TestNodesOfManifestsKeepWhatIsGiven(t *testing.T) {
	for given, want := range map[string]string{
		`{"metadata":{"name":"a","labels":{"kubernetes.io/hostname":"b"},"generation":7,"managedFields":[],"selfLink":"x"},
			"status":{"allocatable":{"cpu":"3","pods":"20"},"capacity":{"cpu":"4"},"conditions":[]}}`: `{
			"metadata":{"name":"a","labels":{"kubernetes.io/hostname":"b"}},
			"status":{"allocatable":{"cpu":"3","pods":"20"},"capacity":{"cpu":"4"},"conditions":[]}}`,
		`{"metadata":{"name":"a","labels":{"x":"y"}},"status":{"allocatable":{"cpu":"3"}}}`: `{
			"metadata":{"name":"a","labels":{"x":"y","kubernetes.io/hostname":"a"}},"status":{
			"allocatable":{"cpu":"3","pods":"110"},"capacity":{"cpu":"3","pods":"110"},
			"conditions":[{"type":"Ready","status":"True"}]}}`,
	} {
		manifest, wanted := decode(t, given), decode(t, want)
		for _, o := range []map[string]any{manifest, wanted} {
			o["apiVersion"], o["kind"] = "v1", "Node"
		}
		objects, err := scenario.NewObjects([]map[string]any{manifest})
		if err != nil {
			t.Fatal(err)
		}
		stop := errors.New("no API server")
		err = objects.Each(func(_ *snapshot.Kind, version string, o map[string]any) error {
			if diff := cmp.Diff(wanted, o); diff != "" || version != "v1" {
				t.Errorf("version %s: %s", version, diff)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	}
}

// Controllers do not run, and objects of one name can be in several namespaces and API groups.
func TestWorkloadsOfManifestsHaveNoPods(t *testing.T) {
	objects, err := scenario.NewObjects(manifests(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, namespace: n}}
---
{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: g, namespace: n}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Deployment d has no pods: no controller runs", "Deployment d has no pods: no controller runs",
		"CronJob c has no pods: no controller runs"}
	if diff := cmp.Diff(want, objects.Notes); diff != "" {
		t.Error(diff)
	}
	var others []any
	for _, o := range objects.Others {
		others = append(others, o["kind"])
	}
	if diff := cmp.Diff([]any{"CronJob", "PodGroup"}, others); diff != "" {
		t.Error(diff)
	}
}

func TestManifestsThatCannotBeObjectsAreRefused(t *testing.T) {
	const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"status":{"allocatable":{"cpu":"4"}}}`
	cases := map[string]struct {
		manifests []string
		want      string
	}{
		"no kind": {[]string{`{"apiVersion":"v1","metadata":{"name":"a"}}`},
			"an object has no apiVersion, kind or metadata.name"},
		"no version": {[]string{`{"kind":"Node","metadata":{"name":"a"}}`}, "an object has no apiVersion"},
		"no name":    {[]string{`{"apiVersion":"v1","kind":"Node","metadata":{}}`}, "an object has no apiVersion"},
		"a pod twice": {[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"}}`}, "Pod a is given twice"},
		"in two versions": {[]string{`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"}}`,
			`{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"a"}}`},
			"PodDisruptionBudget a is given twice"},
		"no resources": {[]string{`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`},
			"node a has no status.allocatable"},
		"given twice": {[]string{node, node}, "Node a is given twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var manifests []map[string]any
			for _, text := range tc.manifests {
				manifests = append(manifests, decode(t, text))
			}
			_, err := scenario.NewObjects(manifests)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
