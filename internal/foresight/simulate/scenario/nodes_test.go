package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// copiesOf returns the copies of the objects of a snapshot for two new nodes like w, and the notes.
func copiesOf(t *testing.T, objects ...string) (copies []map[string]any, notes []string) {
	t.Helper()
	s, err := scenario.Nodes([]scenario.Template{{Name: "w", Count: 2, First: 3}})
	if err != nil {
		t.Fatal(err)
	}
	var originals []scenario.Object
	for _, text := range objects {
		o := decode(t, text)
		kind := kindNamed(t, o["kind"].(string))
		delete(o, "kind")
		if s.IsTemplate(kind, o) {
			originals = append(originals, scenario.Object{Kind: kind, Version: "v1", Fields: o})
		}
	}
	made, notes := s.Copies(originals)
	for _, c := range made {
		copies = append(copies, c.Fields)
	}
	return copies, notes
}

func TestNewNodesAreCopiesWithoutTheStateOfTheirTemplate(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"the node": {
			`{"kind":"Node","metadata":{"name":"w","uid":"u","creationTimestamp":"x","labels":{"kubernetes.io/hostname":"w","pool":"p"}},
				"spec":{"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable"},{"key":"gpu"}]},
				"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"5"},"images":[{}],"addresses":[{}],"conditions":[{"type":"Ready","status":"False"}]}}`,
			`{"metadata":{"name":"w-new-3","labels":{"kubernetes.io/hostname":"w-new-3","pool":"p"}},
				"spec":{"taints":[{"key":"gpu"}]},"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"5"},"conditions":[{"type":"Ready","status":"True"}]}}`,
		},
		"its drivers": {`{"kind":"CSINode","metadata":{"name":"w"},"spec":{"drivers":[{"name":"d"}]}}`,
			`{"metadata":{"name":"w-new-3"},"spec":{"drivers":[{"name":"d"}]}}`},
		"a pod of a DaemonSet": {
			`{"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w"},"status":{"phase":"Running"}}`,
			`{"metadata":{"name":"p-new-3","namespace":"n","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w-new-3"},"status":{"phase":"Running"}}`,
		},
		"a pod of a DaemonSet that is deleted": {`{"kind":"Pod","metadata":{"name":"p","deletionTimestamp":"x",
			"ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w"}}`, ""},
		"another pod": {`{"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"w"}}`, ""},
		"a finished one": {
			`{"kind":"Pod","metadata":{"name":"p","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w"},"status":{"phase":"Failed"}}`, ""},
		"another node": {`{"kind":"Node","metadata":{"name":"v"}}`, ""},
		"another kind": {`{"kind":"StorageClass","metadata":{"name":"w"}}`, ""},
		"without a state": {`{"kind":"Node","metadata":{"name":"w"}}`,
			`{"metadata":{"name":"w-new-3","labels":{"kubernetes.io/hostname":"w-new-3"}},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			copies, _ := copiesOf(t, tc.text)
			if tc.want == "" {
				if len(copies) != 0 {
					t.Errorf("got %v", copies)
				}
				return
			}
			if len(copies) != 2 {
				t.Fatalf("%d copies", len(copies))
			}
			if diff := cmp.Diff(decode(t, tc.want), copies[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if name := copies[1]["metadata"].(map[string]any)["name"].(string); !strings.HasSuffix(name, "-new-4") {
				t.Errorf("the second one is %s", name)
			}
		})
	}
}

// Volumes on the template are not on its copies: labels that a driver gives to one node are theirs
// alone. Labels of a zone are not, even if the zone is named like the node.
func TestNewNodesAreNotWhereTheVolumesOfTheirTemplateAre(t *testing.T) {
	copies, _ := copiesOf(t, `{"kind":"Node","metadata":{"name":"w","labels":{"kubernetes.io/hostname":"w.example",
			"topology.topolvm.io/node":"w","topology.csi.example.com/host":"w.example","topology.csi.example.com/address":"10.0.0.7",
			"topology.ebs.csi.aws.com/zone":"w","pool":"w"}},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.7"}]}}`,
		`{"kind":"CSINode","metadata":{"name":"w"},"spec":{"drivers":[{"name":"topolvm.io","topologyKeys":["topology.topolvm.io/node"]},
			{"name":"csi.example.com","topologyKeys":["topology.csi.example.com/host","topology.csi.example.com/address"]},
			{"name":"ebs.csi.aws.com","topologyKeys":["topology.ebs.csi.aws.com/zone"]}]}}`,
		`{"kind":"CSIStorageCapacity","metadata":{"name":"c","namespace":"n"},"capacity":"5Gi","nodeTopology":{"matchLabels":{"topology.topolvm.io/node":"w"}}}`,
		`{"kind":"CSIStorageCapacity","metadata":{"name":"v","namespace":"n"},"capacity":"5Gi","nodeTopology":{"matchLabels":{"topology.topolvm.io/node":"v"}}}`)
	if len(copies) != 6 {
		t.Fatalf("%d copies: %v", len(copies), copies)
	}
	want := decode(t, `{"kubernetes.io/hostname":"w-new-3","topology.topolvm.io/node":"w-new-3","topology.csi.example.com/host":"w-new-3",
		"topology.csi.example.com/address":"w-new-3","topology.ebs.csi.aws.com/zone":"w","pool":"w"}`)
	if diff := cmp.Diff(want, copies[0]["metadata"].(map[string]any)["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want = decode(t, `{"metadata":{"name":"c-new-3","namespace":"n"},"capacity":"5Gi",
		"nodeTopology":{"matchLabels":{"topology.topolvm.io/node":"w-new-3"}}}`)
	if diff := cmp.Diff(want, copies[2]); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
}

func TestNewNodesHaveTheTaintsOfTheirPoolAlone(t *testing.T) {
	pool := []string{"team", "nvidia.com/gpu", "node.kubernetes.io/windows", "karpenter.sh/capacity-type", "node-role.kubernetes.io/edge"}
	state := []string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "node.cilium.io/agent-not-ready",
		"ebs.csi.aws.com/agent-not-ready", "startup-taint.cluster-autoscaler.kubernetes.io/x", "karpenter.sh/disrupted",
		"karpenter.sh/unregistered", "node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/disk-pressure",
		"status-taint.cluster-autoscaler.kubernetes.io/x", "ignore-taint.cluster-autoscaler.kubernetes.io/x",
		"aws-node-termination-handler/spot-itn", "readiness.k8s.io/network", "NodeWithImpairedVolumes"}
	var taints []string
	for _, key := range append(pool, state...) {
		taints = append(taints, `{"key":"`+key+`","effect":"NoSchedule"}`)
	}
	copies, notes := copiesOf(t, `{"kind":"Node","metadata":{"name":"w"},"spec":{"taints":[`+strings.Join(taints, ",")+`]}}`)
	var got []string
	for _, taint := range copies[1]["spec"].(map[string]any)["taints"].([]any) {
		got = append(got, taint.(map[string]any)["key"].(string))
	}
	if diff := cmp.Diff(pool, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], strings.Join(state, ", ")) {
		t.Errorf("notes %q", notes)
	}
}

// Objects of other nodes are no templates, and storage capacity is one for the nodes of a snapshot.
func TestTemplatesOfNewNodes(t *testing.T) {
	both, err := scenario.Nodes([]scenario.Template{{Name: "w", Count: 1, First: 1}, {Name: "v", Count: 1, First: 1},
		{Name: "w", Count: 1, First: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v", "w"}, both.Nodes); diff != "" || both.Name != "nodes" {
		t.Errorf("%s: %s", both.Name, diff)
	}
	node := decode(t, `{"metadata":{"name":"gpu"},"status":{"capacity":{"cpu":"8"}}}`)
	manifest, err := scenario.Nodes([]scenario.Template{{Name: "gpu", Node: node, Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kind, text string
		both       bool
	}{
		{"Node", `{"metadata":{"name":"w"}}`, true}, {"Node", `{"metadata":{"name":"x"}}`, false},
		{"CSINode", `{"metadata":{"name":"v"}}`, true}, {"Pod", `{"spec":{"nodeName":"v"}}`, true},
		{"Pod", `{"metadata":{"name":"v"},"spec":{}}`, false}, {"Service", `{"metadata":{"name":"v"}}`, false},
		{"CSIStorageCapacity", `{"metadata":{"name":"x"}}`, true},
	} {
		kind, o := kindNamed(t, tc.kind), decode(t, tc.text)
		if got := both.IsTemplate(kind, o); got != tc.both {
			t.Errorf("%s %s: %t", tc.kind, tc.text, got)
		}
		if manifest.IsTemplate(kind, o) {
			t.Errorf("%s %s is a template of nodes of a manifest", tc.kind, tc.text)
		}
	}
	if _, notes := copiesOf(t, `{"kind":"Node","metadata":{"name":"w"},"spec":{"taints":[{"key":"gpu"}]}}`); len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}

func TestNodesOfAManifest(t *testing.T) {
	node := decode(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu"},"status":{"allocatable":{"cpu":"8"}}}`)
	s, err := scenario.Nodes([]scenario.Template{{Name: "gpu", Node: node, Count: 2, First: 1}})
	if err != nil || len(s.Objects) != 2 || len(s.Nodes) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	want := decode(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-new-2","labels":{"kubernetes.io/hostname":"gpu-new-2"}},"spec":{},
		"status":{"allocatable":{"cpu":"8"},"capacity":{"cpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	if diff := cmp.Diff(want, s.Objects[1].Fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = scenario.Nodes([]scenario.Template{{Name: "gpu", Node: decode(t, `{"metadata":{"name":"gpu"}}`), Count: 1}})
	if err == nil || !problem.IsInvalid(err) || !strings.Contains(err.Error(), "no status.allocatable") {
		t.Errorf("got %v", err)
	}
}
