package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
)

func TestExactTable(t *testing.T) {
	r := decision.New(decision.Input{
		Namespace: "shop", Pod: "web", Release: "v1.24.3", Scheduler: "packer", Selected: "a", From: "b", Examined: true,
		Nodes: []string{"a", "b", "c", "d"}, Passed: []string{"a", "b"},
		Filters: []decision.Filter{
			{Plugin: "TaintToleration", Passed: []string{"a", "b"}, Reasons: []string{
				"node(s) had untolerated taint {team: x}"}},
			{Plugin: "NodeResourcesFit", Passed: []string{"a", "b", "c"}, Reasons: []string{
				"Insufficient cpu", "Insufficient memory"}},
		},
		Scores: &decision.Scores{
			Total: map[string]int64{"a": 190, "b": 120}, Plugins: map[string]map[string]int64{"Affinity": {"a": 150, "b": 60},
				"Fit": {"a": 40, "b": 60}},
		},
		Weights: map[string]int64{"Affinity": 3},
	}, "b")
	const best = `pod shop/web goes to node a
it is on node b now
scheduler packer v1.24.3: 4 nodes, 2 refused, 2 scored

RANK	NODE	SCORE	SCORES (WEIGHTED)
1	a	190	Affinity 150, Fit 40
2	b	120	Affinity 60, Fit 60

REFUSED BY	NODES	ONLY BY IT	REASON
TaintToleration	2	1	node(s) had untolerated taint {team: x}
NodeResourcesFit	1	0	Insufficient cpu; Insufficient memory

REFUSED NODE	BY
c	TaintToleration
d	TaintToleration, NodeResourcesFit
`
	compareTable(t, r, best+`
node b lacks 70 points: a has the best score

BY	WEIGHT	b	a	DIFFERENCE
Affinity	3	60	150	-90
Fit	1	60	40	+20

b would win with one of these:
- Affinity: disabled under score instead of weight 3
- Fit: weight 5 instead of weight 1
`)
	r.Chosen = &decision.Chosen{Node: "d", Outcome: decision.Refused, Refusals: r.Refusals,
		Fixes: []decision.Fix{{By: "NodeResourcesFit", Text: "1 node lacks 1 CPU", Fix: "free 1 CPU"}}}
	compareTable(t, r, best+`
for node d to be selected, each of these has to accept it:
- TaintToleration: node(s) had untolerated taint {team: x}
- NodeResourcesFit: 1 node lacks 1 CPU: free 1 CPU
`)
	compareTable(t, &decision.Result{Namespace: "shop", Pod: "web", Release: "v1.24.3", Scheduler: "packer",
		Message: "no room", Nodes: []decision.Node{{Name: "a", Refused: []string{"X"}}}},
		"pod shop/web fits on no node: no room\nscheduler packer v1.24.3: 1 node, 1 refused, 0 scored\n")
}

func compareTable(t *testing.T, r *decision.Result, want string) {
	t.Helper()
	if diff := cmp.Diff(want, exactTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
