package policytest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func owned(p *corev1.Pod, kind, name string) *corev1.Pod {
	controller := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &controller}}
	return p
}

// edges is a simulation of five nodes, two without a zone: a pod with a long name evicts two pods
// of node a, self is placed and then evicted, gone loses its node, and never is not reported.
func edges() *report.Report {
	r := &report.Report{
		Placements: []report.Placement{{Namespace: "n", Name: "with-a-long-name", Node: "a"}},
		Unplaced: []report.Unplaced{{Namespace: "n", Name: "gone", From: "a", Reason: "no room"},
			{Namespace: "n", Name: "self", Reason: report.Evicted, By: "n/with-a-long-name"}},
		Evicted: []report.Placement{{Namespace: "n", Name: "low-2", Node: "a", By: "n/with-a-long-name"},
			{Namespace: "n", Name: "low-1", Node: "a", By: "n/with-a-long-name"},
			{Namespace: "n", Name: "lost", Node: "a", By: "n/x"}},
	}
	var before, after report.Usage
	a := newNode("a", "1", map[string]string{"tier": ""})
	a.Status.Allocatable["example.com/x"] = resource.MustParse("1G")
	for _, u := range []*report.Usage{&before, &after} {
		u.AddNode(a)
		u.AddNode(newNode("b", "2", map[string]string{"pool": "web", "tier": "front"}))
		u.AddNode(newNode("e", "", nil))
		u.AddNode(newNode("f", "", nil))
		small := newNode("s", "2", nil)
		small.Status.Allocatable = corev1.ResourceList{"memory": resource.MustParse("2T")}
		u.AddNode(small)
		for i := range 7 {
			u.AddPod(newPod("n", fmt.Sprintf("p%d", i+1), "b", "100m", "many"))
		}
		u.AddPod(owned(newPod("kube", "agent-b", "b", "0", "agent"), "DaemonSet", "agent"))
		u.AddPod(owned(newPod("kube", "agent-f", "f", "1", "agent"), "DaemonSet", "agent"))
		u.AddPod(owned(newPod("n", "set", "e", "3", "set"), "StatefulSet", "set"))
		big := newPod("n", "big", "s", "0", "set")
		big.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1000000001000")
		u.AddPod(big)
		u.AddPod(newPod("n", "tiny", "s", "0", "set"))
	}
	before.AddPod(newPod("n", "gone", "a", "1", "gone"))
	before.AddPod(newPod("n", "low-1", "a", "1", "low"))
	before.AddPod(newPod("n", "low-2", "a", "1", "low"))
	before.AddPod(newPod("n", "lost", "a", "1", "low"))
	high := newPod("n", "with-a-long-name", "a", "2", "high")
	high.Spec.Containers[0].Resources.Requests["example.com/x"] = resource.MustParse("1")
	after.AddPod(high)
	after.AddPending(newPod("n", "gone", "", "1", "gone"))
	bare, plain := newPod("n", "never", "", "1", "bare"), newPod("n", "plain", "", "1", "bare")
	after.AddPending(owned(bare, "ReplicaSet", "bare-5d9")) // without the label of its Deployment
	after.AddPending(owned(plain, "StatefulSet", "plain-5d9"))
	plain.Labels["pod-template-hash"] = "5d9"
	r.Measure(&before, &after)
	return r
}

func TestExpectationsAtTheirEdges(t *testing.T) {
	const never = "pending: the simulation did not schedule it"
	pods := func(got string, keys ...string) (all []Failure) {
		for _, key := range keys {
			all = append(all, Failure{Pod: key, Got: got})
		}
		return all
	}
	nodes := func(got string, names ...string) (all []Failure) {
		for _, name := range names {
			all = append(all, Failure{Node: name, Got: got})
		}
		return all
	}
	evicted := []Failure{{Pod: "n/lost", Got: "evicted by n/x"}, {Pod: "n/low-1", Got: "evicted by n/with-a-long-name"},
		{Pod: "n/low-2", Got: "evicted by n/with-a-long-name"}, {Pod: "n/self", Got: "evicted by n/with-a-long-name"}}
	cases := []struct {
		line, got string
		met       bool
		failures  []Failure
	}{
		{"{pod: n/with-a-long-name, evicts: n/*}", "evicts n/low-1, n/low-2, n/self", true, nil},
		{"{pod: n/with-a-long-name, evicts: n/set}", "evicts none of them", false,
			[]Failure{{Pod: "n/with-a-long-name", Node: "a", Got: "evicts none of them"}}},
		{"{pod: n/l*, evicted: false}", "0 of 3 pods", false, evicted[:3]},
		{"{pod: n/self, evicted: true}", "evicted by n/with-a-long-name", true, nil},
		{"{pod: n/self, evicted: false}", "evicted by n/with-a-long-name", false, evicted[3:]},
		{"{pod: n/self, pending: ''}", "evicted by n/with-a-long-name", false, evicted[3:]},
		{"{pod: n/set, pending: ''}", "on node e", false, []Failure{{Pod: "n/set", Node: "e", Got: "on node e"}}},
		{"{pod: n/gone, node: '*'}", "pending: no room", false, pods("pending: no room", "n/gone")},
		{"{pod: n/gone, nodeLabels: {tier: ''}}", "pending: no room", false, pods("pending: no room", "n/gone")},
		{"{pod: n/gone, moved: true}", "from a: pending: no room", true, nil},
		{"{pod: n/gone, moved: false}", "from a: pending: no room", false, pods("from a: pending: no room", "n/gone")},
		{"{pod: n/with-a-long-name, moved: true}", "on node a", false, []Failure{{Pod: "n/with-a-long-name", Node: "a", Got: "on node a"}}},
		{"{pod: n/never, pending: not schedule}", never, true, nil},
		{"{labels: {app: bare}, pending: '', count: {atLeast: 3}}", "2 of 2 pods", false, nil},
		{"{labels: {app: bare}, pending: other, count: {atLeast: 1}}", "0 of 2 pods", false,
			pods(never, "n/never", "n/plain")},
		{"{workload: n/ReplicaSet/bare-5d9, pending: ''}", never, true, nil},
		{"{workload: n/bare, pending: ''}", "no such pod", false, nil},
		{"{workload: n/StatefulSet/plain-5d9, pending: ''}", never, true, nil},
		{"{workload: n/bare-5d9, pending: ''}", never, true, nil},
		{"{workload: n/with-a-long-name, node: a}", "no such pod", false, nil},
		{"{labels: {none: ''}, node: a}", "no such pod", false, nil},
		{"{pod: n/with-a-long-name, labels: {app: low}, node: a}", "no such pod", false, nil},
		{"{pod: n/with-a-long-name, nodeLabels: {tier: '', pool: ''}}", "on node a, which has not pool=", false,
			[]Failure{{Pod: "n/with-a-long-name", Node: "a", Got: "on node a, which has not pool="}}},
		{"{pod: n/p1, nodeLabels: {tier: '', pool: web}}", "on node b, which has not tier=", false,
			[]Failure{{Pod: "n/p1", Node: "b", Got: "on node b, which has not tier="}}},
		{"{labels: {app: many}, node: b, count: {atLeast: 7, atMost: 7}}", "7 of 7 pods", true, nil},
		{"{labels: {app: low}, evicted: true, count: {below: 3}}", "3 of 3 pods", false, evicted[:3]},

		{"{pod: n/*, spread: {over: zone, exactly: 2}}", "2: 1 1, 2 9", true, nil},
		{"{pod: n/set, spread: {over: zone, atLeast: 1}}", "0: ", false,
			[]Failure{{Pod: "n/set", Node: "e", Got: "on node e, which has no zone"}}},
		{"{pod: n/g*, spread: {over: node, atLeast: 1}}", "0: ", false, pods("pending: no room", "n/gone")},
		{"{pod: n/none, spread: {over: node, exactly: 0}}", "no such pod", false, nil},
		{"{pod: 'n/[ps]*', spread: {over: tier, each: {atMost: 6}}}", "1: front 7", false, append(pods("in front", "n/p1",
			"n/p2", "n/p3", "n/p4", "n/p5", "n/p6", "n/p7"), Failure{Pod: "n/plain", Got: never},
			Failure{Pod: "n/self", Got: "evicted by n/with-a-long-name"},
			Failure{Pod: "n/set", Node: "e", Got: "on node e, which has no tier"})},

		{"{pod: n/*, requests: {resource: cpu, exactly: 5700m}}", "5700m", true, nil},
		{"{pod: 'n/p[12]', requests: {resource: cpu, above: 200m}}", "200m", false, []Failure{
			{Pod: "n/p1", Node: "b", Got: "requests 100m"}, {Pod: "n/p2", Node: "b", Got: "requests 100m"}}},
		// A sum may differ by one part in 10^9.
		{"{pod: n/big, requests: {resource: memory, exactly: 1000000000000}}", "1000000001000", true, nil},
		{"{pod: n/big, requests: {resource: memory, atMost: 999999999999}}", "1000000001000", false,
			[]Failure{{Pod: "n/big", Node: "s", Got: "requests 1000000001000"}}},
		{"{pod: n/big, requests: {resource: memory, atLeast: 1000000002000}}", "1000000001000", true, nil},
		{"{pod: n/big, requests: {resource: memory, atLeast: 1000000002002}}", "1000000001000", false,
			[]Failure{{Pod: "n/big", Node: "s", Got: "requests 1000000001000"}}},
		{"{utilization: {resource: example.com/x, exactly: 0}}", "0.0% to 0.0%", true, nil},

		{"{emptyNodes: {exactly: 1}}", "1 node", true, nil},
		{"{emptyNodes: {above: 1}}", "1 node", false, []Failure{{Node: "a", Got: "n/with-a-long-name"},
			{Node: "e", Got: "n/set"}, {Node: "s", Got: "n/big, n/tiny"}, {Node: "b", Got: "n/p1, n/p2, n/p3, n/p4, n/p5 and 2 others"}}},
		{"{emptyNodes: {labels: {tier: ''}, exactly: 0}}", "0 nodes", true, nil},
		{"{emptyNodes: {labels: {tier: front, pool: batch}, exactly: 1}}", "0 nodes", false, nil},

		{"{utilization: {resource: cpu, above: 0.05}}", "7.0% to 30.0%", true, nil},
		{"{utilization: {resource: cpu, above: 0.1}}", "7.0% to 30.0%", false,
			append(nodes("10.0%: 1 of 10", "f"), nodes("7.0%: 700m of 10", "b")...)},
		{"{utilization: {resource: cpu, below: 0.2}}", "7.0% to 30.0%", false,
			append(nodes("30.0%: 3 of 10", "e"), nodes("20.0%: 2 of 10", "a")...)},
		{"{utilization: {resource: cpu, of: total, exactly: 16.75%}}", "16.8%", true, nil},
		{"{utilization: {resource: cpu, of: mean, exactly: 16.75%}}", "16.8%", true, nil},
		{"{utilization: {resource: cpu, of: p1, exactly: 7%}}", "7.0%", true, nil},
		{"{utilization: {resource: cpu, of: p25, exactly: 7%}}", "7.0%", true, nil},
		{"{utilization: {resource: cpu, of: p26, exactly: 10%}}", "10.0%", true, nil},
		{"{utilization: {resource: cpu, of: p100, exactly: 30%}}", "30.0%", true, nil},
	}
	for _, tc := range cases {
		t.Run(tc.line, func(t *testing.T) {
			got := check(decode(t, tc.line), edges())
			if got.Got != tc.got || got.Met != tc.met {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(tc.failures, got.Failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a name an expectation is described by its pods and its result.
func TestExpectationsAreDescribed(t *testing.T) {
	for line, want := range map[string][2]string{ // the name and the result
		"{name: fast, pod: shop/web, node: a}":               {"fast", "on node a"},
		"{pod: shop/web, node: a}":                           {"shop/web: on node a", "on node a"},
		"{workload: shop/web, node: a}":                      {"workload shop/web: on node a", "on node a"},
		"{labels: {b: c, a: b}, node: a}":                    {"a=b,b=c: on node a", "on node a"},
		"{pod: a/b, workload: a/c, labels: {d: e}, node: f}": {"a/b, workload a/c, d=e: on node f", "on node f"},
		"{pod: a/b, nodes: [c, d]}":                          {"a/b: on node c or d", "on node c or d"},
		"{pod: a/b, nodes: [c], count: {atLeast: 1, atMost: 3}}": {"a/b: on node c: at least 1 and at most 3 pods",
			"on node c: at least 1 and at most 3 pods"},
		"{pod: a/b, nodeLabels: {d: e, c: d}}":       {"a/b: on a node with c=d,d=e", "on a node with c=d,d=e"},
		"{pod: a/b, pending: ''}":                    {"a/b: pending", "pending"},
		"{pod: a/b, pending: cpu, count: 2}":         {"a/b: pending: cpu: exactly 2 pods", "pending: cpu: exactly 2 pods"},
		"{pod: a/b, evicted: true}":                  {"a/b: evicted", "evicted"},
		"{pod: a/b, evicted: false}":                 {"a/b: not evicted", "not evicted"},
		"{pod: a/b, moved: true}":                    {"a/b: moved to another node", "moved to another node"},
		"{pod: a/b, moved: false}":                   {"a/b: not moved", "not moved"},
		"{pod: a/b, evicts: c/*}":                    {"a/b: evicts c/*", "evicts c/*"},
		"{pod: a/b, spread: {over: zone, above: 1}}": {"a/b: spread over zone: above 1", "spread over zone: above 1"},
		"{pod: a/b, spread: {over: zone, each: {below: 3}}}": {"a/b: pods in each zone: below 3",
			"pods in each zone: below 3"},
		"{pod: a/b, spread: {over: rack, exactly: 2, each: 1}}": {
			"a/b: spread over rack: exactly 2, pods in each rack: exactly 1",
			"spread over rack: exactly 2, pods in each rack: exactly 1"},
		"{pod: a/b, requests: {resource: cpu, below: 7}}": {"a/b: requests of cpu: below 7", "requests of cpu: below 7"},
		"{copies: {atLeast: 3}}":                          {"copies that fit: at least 3", "copies that fit: at least 3"},
		"{emptyNodes: {atMost: 3}}":                       {"empty nodes: at most 3", "empty nodes: at most 3"},
		"{emptyNodes: {labels: {a: b}, exactly: 3}}": {"empty nodes with a=b: exactly 3",
			"empty nodes with a=b: exactly 3"},
		"{utilization: {resource: cpu, below: 1}}": {"utilization of cpu, each of the nodes: below 1",
			"utilization of cpu, each of the nodes: below 1"},
		"{utilization: {resource: cpu, of: p90, labels: {a: b}, below: 90%}}": {
			"utilization of cpu, p90 of the nodes with a=b: below 90%", "utilization of cpu, p90 of the nodes with a=b: below 90%"},
		"{sameAs: {preset: p}}": {"the same nodes as by preset p", "the same nodes as by preset p"},
		"{pod: a/*, sameAs: {scheduler: s.yaml, preset: p, branch: v1.24.3}}": {
			"a/*: the same nodes as by s.yaml, preset p, v1.24.3", "the same nodes as by s.yaml, preset p, v1.24.3"},
	} {
		e, r := decode(t, line), edges()
		r.Capacity = &report.Capacity{}
		o := same(e, nil, nil)
		if e.SameAs == nil {
			o = check(e, r)
		}
		if o.Name != want[0] || o.Expected != want[1] {
			t.Errorf("%s: got %q, %q", line, o.Name, o.Expected)
		}
	}
}

func TestFailuresAreOneLine(t *testing.T) {
	for want, f := range map[string]Failure{
		"shop/web: on node a": {Pod: "shop/web", Node: "a", Got: "on node a"},
		"node a: empty":       {Node: "a", Got: "empty"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
