package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// manifests decodes YAML documents.
func manifests(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for document := range strings.SplitSeq(text, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decode(t, string(text)))
	}
	return all
}

// printObject returns an object as a YAML document.
func printObject(t *testing.T, o map[string]any) string {
	t.Helper()
	text, err := snapshot.Encode(o)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The golden file lists the objects of two copies of each workload, in the order in which they are
// created.
func TestWorkloadsBecomePodsAsTheirControllersMakeThem(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("testdata", "workloads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Add(manifests(t, string(input)), 2, 10)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	templates := scenario.ClaimTemplates{}
	for _, o := range s.Objects {
		out = append(out, printObject(t, o.Fields))
		if o.Kind.Name != o.Fields["kind"] {
			t.Errorf("%v is an object of kind %s", o.Fields["kind"], o.Kind.Name)
		}
		if o.Kind.Name == "ResourceClaimTemplate" {
			templates.Add(o.Fields)
		}
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		next := 0
		for range 2 {
			var replicas []scenario.Replica
			replicas, next = w.Copy(next, func(key string) bool { return key == "default/db-1" }, templates)
			for _, r := range replicas {
				for _, claim := range r.Claims {
					out = append(out, printObject(t, claim.Fields))
				}
				out = append(out, printObject(t, r.Pod))
				for _, owned := range r.Owned {
					out = append(out, printObject(t, owned.Fields))
				}
			}
		}
	}
	golden.Equal(t, "testdata/pods.yaml", strings.Join(out, "---\n"))
	if want := []string{"manifests of kind ConfigMap are ignored: no scheduler reads them"}; !cmp.Equal(want, s.Notes) {
		t.Errorf("notes %q, want %q", s.Notes, want)
	}
	if s.Count != 2 || s.Limit != 10 {
		t.Errorf("%d copies, at most %d more", s.Count, s.Limit)
	}
}

func TestReplicas(t *testing.T) {
	const template = `"template":{"spec":{"containers":[{"name":"c"}]}}`
	cases := map[string]struct {
		manifest string
		want     int
	}{
		"by default": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{` +
			template + `}}`, 1},
		"of a Deployment": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":4,` + template + `}}`, 4},
		"of a Job": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":4,` + template + `}}`, 4},
		"of a Job with less to do": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":4,"completions":3,` + template +
				`}}`, 3},
		"the most": {
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"replicas":100000,` + template + `}}`,
			100_000},
		"without controllers": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"replicas":3,
			"containers":[{"name":"c"}]}}`, 1},
		"of a Job with more to do": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"completions":3,` + template + `}}`, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Add([]map[string]any{decode(t, tc.manifest)}, 1, 0)
			if err != nil || len(s.Workloads) != 1 || s.Workloads[0].Replicas != tc.want {
				t.Errorf("got %+v, %v, want %d", s.Workloads, err, tc.want)
			}
		})
	}
}

func TestManifestsThatCannotBeAddedAreRefused(t *testing.T) {
	const template = `"template":{"spec":{"containers":[{}]}}`
	cases := map[string]struct{ manifest, want string }{
		"no pods": {`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}`, "no pod to add"},
		"no replicas": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0,` + template + `}}`,
			"no pod to add"},
		"a DaemonSet": {`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a"}}`,
			"pods of a DaemonSet cannot be added"},
		"no name": {`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{}]}}`,
			"a Pod has no metadata.name"},
		"no containers": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
			"Pod default/a: expected a pod with containers"},
		"no template": {`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"}}`,
			"StatefulSet default/a: expected a pod"},
		"bound": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[{}]}}`,
			"spec.nodeName is set"},
		"not a number": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"3",` + template + `}}`,
			"invalid spec.replicas 3"},
		"a CronJob": {`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"}}`,
			"pods of a CronJob cannot be added"},
		"a ReplicationController": {`{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"a"}}`,
			"pods of a ReplicationController cannot be added"},
		"too many": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":100001,` + template + `}}`,
			"Deployment default/a: invalid spec.replicas 100001: must be between 0 and 100000"},
		"a fraction": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":1.5,` + template + `}}`,
			"invalid spec.replicas 1.5"},
		"completions": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"completions":"x",` + template + `}}`,
			"invalid spec.completions x: must be a number"},
		"another value of a label": {
			`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"a","namespace":"n"},"spec":{` +
				`"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{}]}}}}`,
			"ReplicaSet n/a: spec.selector does not"},
		"a negative number": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":-1,` + template + `}}`,
			"invalid spec.parallelism -1"},
		"selects no pod of its": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{` +
				`"selector":{"matchLabels":{"a":"b"}},` + template + `}}`,
			"does not match"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Add([]map[string]any{decode(t, tc.manifest)}, 1, 0)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// A definition says whether objects of its kind have namespaces. One of several objects is noted.
func TestObjectsOfDefinedKindsAreAdded(t *testing.T) {
	s, err := scenario.Add(manifests(t, `{apiVersion: example.com/v1, kind: Quota, metadata: {name: q}}
---
{apiVersion: example.com/v1, kind: Rack, metadata: {name: r}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: quotas.example.com},
  spec: {group: example.com, scope: Namespaced, names: {kind: Quota, plural: quotas}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: racks.example.com},
  spec: {group: example.com, scope: Cluster, names: {kind: Rack, plural: rackz}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {a: b}, labels: {c: d}},
  spec: {nodeName: "", containers: [{name: c}]}}`), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.Objects {
		namespace, name := scenario.NameOf(o.Fields)
		got = append(got, o.Kind.GroupResource()+" "+o.Version+" "+namespace+"/"+name)
	}
	if diff := cmp.Diff([]string{"quotas.example.com v1 default/q", "rackz.example.com v1 /r"}, got); diff != "" {
		t.Error(diff)
	}
	pods, next := s.Workloads[0].Copy(0, func(string) bool { return false }, nil)
	more, _ := s.Workloads[0].Copy(next, func(key string) bool { return key == "default/p-1" }, nil)
	if len(pods) != 1 || pods[0].Key != "default/p" || len(more) != 1 || more[0].Key != "default/p-2" {
		t.Errorf("got %v, then %v", pods, more)
	}
	want := decode(t, `{"name":"p","namespace":"default","annotations":{"a":"b"},"labels":{"c":"d"}}`)
	metadata := pods[0].Pod["metadata"].(map[string]any)
	delete(metadata, "uid")
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Error(diff)
	}
}

func TestKindsWithoutPodsAreNoted(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`
	for manifest, want := range map[string][]string{
		`{"apiVersion":"example.com/v1","kind":"TrainJob","metadata":{"name":"t"}}`: {
			"manifests of kind TrainJob are created for plugins alone: no controller creates pods for them"},
		`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"g"}}`: nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`: {
			"manifests of kind Secret are ignored: no scheduler reads them"},
	} {
		s, err := scenario.Add([]map[string]any{decode(t, manifest), decode(t, manifest), decode(t, pod)}, 1, 0)
		if diff := cmp.Diff(want, s.Notes); err != nil || diff != "" {
			t.Errorf("%v, notes (-want +got):\n%s", err, diff)
		}
	}
}

// Pods that a scenario leaves out are restored in the next scenario.
func TestPodsThatAreLeftOutCanBeScheduledLater(t *testing.T) {
	pods := kindNamed(t, "Pod")
	for _, text := range []string{`{"spec":{}}`, `{"spec":{"schedulerName":"a"}}`} {
		left, action := scenario.Drain(nil).Apply(pods, decode(t, text))
		if action != scenario.Leave {
			t.Fatalf("action %v", action)
		}
		again, action := scenario.Drain(nil).Apply(pods, left)
		if diff := cmp.Diff(left, again); diff != "" || action != scenario.Leave {
			t.Errorf("left out twice: %v %s", action, diff)
		}
		got, action := scenario.Pending().Apply(pods, again)
		if diff := cmp.Diff(decode(t, text), got); diff != "" || action != scenario.Schedule {
			t.Errorf("%v (-want +got):\n%s", action, diff)
		}
	}
}
