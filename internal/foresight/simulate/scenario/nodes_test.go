package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

func TestNewNodesAreCopiesWithoutTheStateOfTheirTemplate(t *testing.T) {
	s, err := scenario.Nodes([]scenario.Template{{Name: "w", Count: 2, First: 3}})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ kind, text, want string }{
		"the node": {
			"Node", `{"metadata":{"name":"w","uid":"u","creationTimestamp":"x","labels":{"kubernetes.io/hostname":"w","pool":"p"}},
				"spec":{"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable"},{"key":"gpu"}]},
				"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"5"},"images":[{}],"addresses":[{}],"conditions":[{"type":"Ready","status":"False"}]}}`,
			`{"metadata":{"name":"w-new-3","labels":{"kubernetes.io/hostname":"w-new-3","pool":"p"}},
				"spec":{"taints":[{"key":"gpu"}]},"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"5"},"conditions":[{"type":"Ready","status":"True"}]}}`,
		},
		"its drivers": {"CSINode", `{"metadata":{"name":"w"},"spec":{"drivers":[{"name":"d"}]}}`,
			`{"metadata":{"name":"w-new-3"},"spec":{"drivers":[{"name":"d"}]}}`},
		"a pod of a DaemonSet": {
			"Pod",
			`{"metadata":{"name":"p","namespace":"n","uid":"u","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w"},"status":{"phase":"Running"}}`,
			`{"metadata":{"name":"p-new-3","namespace":"n","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w-new-3"},"status":{"phase":"Running"}}`,
		},
		"another pod": {"Pod", `{"metadata":{"name":"p"},"spec":{"nodeName":"w"}}`, ""},
		"a finished one": {"Pod",
			`{"metadata":{"name":"p","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"w"},"status":{"phase":"Failed"}}`, ""},
		"another node": {"Node", `{"metadata":{"name":"v"}}`, ""},
		"another kind": {"StorageClass", `{"metadata":{"name":"w"}}`, ""},
		"without a state": {"Node", `{"metadata":{"name":"w"}}`,
			`{"metadata":{"name":"w-new-3","labels":{"kubernetes.io/hostname":"w-new-3"}},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := decode(t, tc.text)
			copies := s.Copies(kindNamed(t, tc.kind), o)
			if diff := cmp.Diff(decode(t, tc.text), o); diff != "" {
				t.Errorf("the template is changed: %s", diff)
			}
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
