package policytest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func newNode(name, zone string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	for key, value := range labels {
		n.Labels[key] = value
	}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("10"), "pods": resource.MustParse("110")}
	return n
}

// newPod returns a pod of the Deployment web, if app is web.
func newPod(namespace, name, node, cpu, app string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{}}}}
	p.Labels = map[string]string{"app": app}
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	if app == "web" {
		controller := true
		p.Labels["pod-template-hash"] = "5d9"
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d9", Controller: &controller}}
	}
	return p
}

// example is a simulation of four nodes in three zones: three pods of web get nodes, big does not,
// old moves from a to b, and team-a/high evicts team-b/low.
func example() *report.Report {
	r := &report.Report{
		Placements: []report.Placement{
			{Namespace: "shop", Name: "web-1", Node: "a"}, {Namespace: "shop", Name: "web-2", Node: "b"},
			{Namespace: "shop", Name: "web-3", Node: "b"}, {Namespace: "shop", Name: "old", From: "a", Node: "b"},
			{Namespace: "team-a", Name: "high", Node: "c"},
		},
		Unplaced: []report.Unplaced{{Namespace: "shop", Name: "big", Reason: "0/4 nodes are available: 4 Insufficient cpu."}},
		Evicted: []report.Placement{{Namespace: "team-b", Name: "low", Node: "c", By: "team-a/high"},
			{Namespace: "team-b", Name: "other", Node: "c"}},
		Capacity: &report.Capacity{Copies: 10, Stop: &report.Unplaced{Namespace: "x", Name: "train-11", Reason: "no GPU"}},
	}
	var before, after report.Usage
	for _, u := range []*report.Usage{&before, &after} {
		u.AddNode(newNode("a", "1", nil))
		u.AddNode(newNode("b", "2", map[string]string{"pool": "web"}))
		u.AddNode(newNode("c", "3", nil))
		u.AddNode(newNode("d", "3", map[string]string{"pool": "batch"}))
	}
	before.AddPod(newPod("shop", "old", "a", "1", "old"))
	before.AddPod(newPod("team-b", "low", "c", "9", "low"))
	before.AddPod(newPod("team-b", "other", "c", "1", "low"))
	after.AddPod(newPod("shop", "old", "b", "1", "old"))
	after.AddPod(newPod("shop", "web-1", "a", "2", "web"))
	after.AddPod(newPod("shop", "web-2", "b", "2", "web"))
	after.AddPod(newPod("shop", "web-3", "b", "2", "web"))
	after.AddPod(newPod("team-a", "high", "c", "9500m", "high"))
	after.AddPending(newPod("shop", "big", "", "20", "big"))
	r.Measure(&before, &after)
	return r
}

// decode returns the expectation of a line of YAML.
func decode(t *testing.T, line string) *v1alpha1.Expectation {
	t.Helper()
	parsed, err := v1alpha1.DecodeTest([]byte("apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\n" +
		"steps: [{scenario: add}]\nexpect:\n- " + line + "\n"))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return &parsed.Expect[0]
}

func TestExpectationsAreComparedWithTheResult(t *testing.T) {
	const unplaced = "pending: 0/4 nodes are available: 4 Insufficient cpu."
	unknown := Failure{Pod: "team-b/other", Node: "c", Got: "evicted by a pod that the scheduler did not report"}
	evicts := Failure{Pod: "team-a/high", Node: "c", Got: "evicts team-b/low"}
	web := func(name, where string) Failure {
		return Failure{Pod: "shop/" + name, Got: "in " + where}
	}
	cases := []struct {
		line, got string
		met       bool
		failures  []Failure
	}{
		{"{pod: shop/web-1, node: a}", "on node a", true, nil},
		{"{pod: shop/web-1, node: b}", "on node a", false, []Failure{{Pod: "shop/web-1", Node: "a", Got: "on node a"}}},
		{"{pod: shop/web-*, nodes: [a, b]}", "3 of 3 pods", true, nil},
		{"{pod: shop/web-*, node: a}", "1 of 3 pods", false, []Failure{
			{Pod: "shop/web-2", Node: "b", Got: "on node b"}, {Pod: "shop/web-3", Node: "b", Got: "on node b"}}},
		{"{pod: shop/web-*, node: a, count: {atLeast: 1}}", "1 of 3 pods", true, nil},
		{"{pod: shop/web-*, node: a, count: 0}", "1 of 3 pods", false, []Failure{
			{Pod: "shop/web-1", Node: "a", Got: "on node a"}}},
		{"{workload: shop/web, node: '*'}", "3 of 3 pods", true, nil},
		{"{workload: shop/Deployment/w*, node: '*'}", "3 of 3 pods", true, nil},
		{"{workload: shop/ReplicaSet/web-5d9, node: '*'}", "no such pod", false, nil},
		{"{labels: {app: web}, pod: shop/web-2, nodeLabels: {pool: web}}", "on node b", true, nil},
		{"{pod: shop/web-1, nodeLabels: {pool: web}}", "on node a, which has not pool=web", false, []Failure{
			{Pod: "shop/web-1", Node: "a", Got: "on node a, which has not pool=web"}}},
		{"{pod: shop/big, pending: Insufficient cpu}", unplaced, true, nil},
		{"{labels: {app: big}, pending: ''}", unplaced, true, nil},
		{"{pod: shop/big, pending: Insufficient memory}", unplaced, false,
			[]Failure{{Pod: "shop/big", Got: unplaced}}},
		{"{pod: shop/none, pending: ''}", "no such pod", false, nil},
		{"{pod: shop/none, pending: '', count: 0}", "0 of 0 pods", true, nil},
		{"{pod: team-b/low, evicted: true}", "evicted by team-a/high", true, nil},
		{"{pod: team-b/other, evicted: true}", "evicted", true, nil},
		{"{pod: shop/old, evicted: false}", "on node b", true, nil},
		{"{pod: shop/old, moved: true}", "from a: on node b", true, nil},
		{"{pod: shop/web-1, moved: false}", "on node a", true, nil},
		{"{pod: team-a/*, evicts: team-b/*, count: 0}", "2 of 2 pods", false, []Failure{evicts, unknown}},
		{"{pod: team-a/*, evicts: team-b/low}", "evicts team-b/low", true, nil},
		{"{pod: shop/*, evicts: team-b/low, count: 0}", "0 of 5 pods", true, nil},
		{"{workload: shop/web, spread: {over: zone, atLeast: 2, each: {atMost: 2}}}", "2: 1 1, 2 2", true, nil},
		{"{workload: shop/web, spread: {over: zone, atLeast: 3}}", "2: 1 1, 2 2", false,
			[]Failure{web("web-1", "1"), web("web-2", "2"), web("web-3", "2")}},
		{"{workload: shop/web, spread: {over: node, each: 1}}", "2: a 1, b 2", false,
			[]Failure{web("web-2", "b"), web("web-3", "b")}},
		{"{pod: shop/*, requests: {resource: cpu, exactly: 7}}", "7", true, nil},
		{"{pod: team-a/*, requests: {resource: cpu, below: 9500m}}", "9500m", false,
			[]Failure{{Pod: "team-a/high", Node: "c", Got: "requests 9500m"}}},
		{"{copies: 10}", "10 copies", true, nil},
		{"{copies: {atLeast: 11}}", "10 copies", false, []Failure{{Pod: "x/train-11", Got: "pending: no GPU"}}},
		{"{copies: {above: 9}}", "10 copies", true, nil},
		{"{copies: {above: 10}}", "10 copies", false, []Failure{{Pod: "x/train-11", Got: "pending: no GPU"}}},
		{"{copies: {below: 11}}", "10 copies", true, nil},
		{"{copies: {below: 10}}", "10 copies", false, []Failure{{Pod: "x/train-11", Got: "pending: no GPU"}}},
		{"{emptyNodes: {atLeast: 1}}", "1 node", true, nil},
		{"{emptyNodes: {labels: {pool: web}, atLeast: 1}}", "0 nodes", false,
			[]Failure{{Node: "b", Got: "shop/old, shop/web-2, shop/web-3"}}},
		{"{emptyNodes: {exactly: 0}}", "1 node", false, []Failure{{Node: "d", Got: "empty"}}},
		{"{utilization: {resource: cpu, of: p50, exactly: 0.2}}", "20.0%", true, nil},
		{"{utilization: {resource: cpu, of: p99, below: 90%}}", "95.0%", false,
			[]Failure{{Node: "c", Got: "95.0%: 9500m of 10"}}},
		{"{utilization: {resource: cpu, of: total, atMost: 0.4125}}", "41.2%", true, nil},
		{"{utilization: {resource: cpu, of: mean, above: 0.4125}}", "41.2%", false, []Failure{
			{Node: "a", Got: "20.0%: 2 of 10"}, {Node: "d", Got: "0.0%: 0 of 10"}}},
		{"{utilization: {resource: cpu, labels: {pool: web}, exactly: 0.5}}", "50.0% to 50.0%", true, nil},
		{"{utilization: {resource: gpu, below: 1}}", "no node has the resource", false, nil},
	}
	for _, tc := range cases {
		t.Run(tc.line, func(t *testing.T) {
			got := check(decode(t, tc.line), example())
			if got.Got != tc.got || got.Met != tc.met || got.Expected == "" || got.Name == "" {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(tc.failures, got.Failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// No upper limit is met if more copies may fit.
func TestMoreCopiesMayFit(t *testing.T) {
	r := &report.Report{Capacity: &report.Capacity{Copies: 10, Limited: true}}
	for line, met := range map[string]bool{"{copies: 10}": false, "{copies: {atMost: 20}}": false,
		"{copies: {below: 20}}": false, "{copies: {above: 9}}": true, "{copies: {above: 10}}": false,
		"{copies: {atLeast: 10}}": true, "{copies: {atLeast: 11}}": false} {
		if got := check(decode(t, line), r); got.Met != met || got.Got != "at least 10 copies: none was refused" {
			t.Errorf("%s: got %+v", line, got)
		}
	}
}

// placed is a simulation in which the pod shop/web gets a node, or none, is evicted, or is missing,
// and shop/same gets the node a.
func placed(state string) *report.Report {
	r := &report.Report{}
	var before, after report.Usage
	for _, name := range []string{"a", "b", "c"} {
		after.AddNode(newNode(name, "1", nil))
	}
	after.AddPod(newPod("shop", "same", "a", "1", ""))
	switch state {
	case "":
		r.Unplaced = []report.Unplaced{{Namespace: "shop", Name: "web", Reason: "no room"}}
	case "evicted":
		r.Evicted = []report.Placement{{Namespace: "shop", Name: "web", Node: "a"}}
	case "missing":
	default:
		after.AddPod(newPod("shop", "web", state, "1", ""))
	}
	r.Measure(&before, &after)
	return r
}

func TestTiesAreNotDifferences(t *testing.T) {
	runs := func(states ...string) (all []*report.Report) {
		for _, state := range states {
			all = append(all, placed(state))
		}
		return all
	}
	cases := map[string]struct {
		own, other []*report.Report
		line, got  string
		difference string
	}{
		"the same":   {runs("a"), runs("a"), "{sameAs: {preset: p}}", "0 of 2 pods differ", ""},
		"another":    {runs("a"), runs("b"), "{sameAs: {preset: p}}", "1 of 2 pods differ", "on node a, not on node b"},
		"a tie":      {runs("a", "b"), runs("b", "c"), "{sameAs: {preset: p}}", "0 of 2 pods differ", ""},
		"no tie":     {runs("a", "a"), runs("b", "c"), "{sameAs: {preset: p}}", "1 of 2 pods differ", "on node a, not on node b or on node c"},
		"pending":    {runs(""), runs("b"), "{sameAs: {preset: p}}", "1 of 2 pods differ", "pending, not on node b"},
		"evicted":    {runs("evicted"), runs(""), "{sameAs: {preset: p}}", "1 of 2 pods differ", "evicted, not pending"},
		"only there": {runs("missing"), runs("b"), "{sameAs: {preset: p}}", "1 of 2 pods differ", "missing, not on node b"},
		"only here":  {runs("b", "c"), runs("missing"), "{sameAs: {preset: p}}", "1 of 2 pods differ", "on node b or on node c, not there"},
		"of a pod":   {runs("a"), runs("b"), "{pod: shop/w*, sameAs: {preset: p}}", "1 of 1 pod differs", "on node a, not on node b"},
		"of another": {runs("a"), runs("b"), "{pod: shop/same, sameAs: {preset: p}}", "0 of 1 pod differs", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var failures []Failure
			if tc.difference != "" {
				failures = []Failure{{Pod: "shop/web", Got: tc.difference}}
			}
			got := same(decode(t, tc.line), tc.own, tc.other)
			if diff := cmp.Diff(failures, got.Failures); diff != "" || got.Met != (failures == nil) || got.Got != tc.got {
				t.Errorf("met %t, %s, failures (-want +got):\n%s", got.Met, got.Got, diff)
			}
		})
	}
}
