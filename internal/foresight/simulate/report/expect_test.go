package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestExpectationsAreComparedWithTheResult(t *testing.T) {
	r := &report.Report{
		Placements: []report.Placement{{Namespace: "shop", Name: "web-1", Node: "a"},
			{Namespace: "shop", Name: "web-2", Node: "b"}},
		Unplaced: []report.Unplaced{
			{Namespace: "shop", Name: "big", Reason: "0/2 nodes are available: 2 Insufficient cpu."},
			{Namespace: "shop", Name: "unlucky", Reason: report.Evicted},
		},
		Evicted: []report.Placement{{Namespace: "shop", Name: "low", Node: "a"}},
	}
	bound := map[string]string{"shop/low": "a", "shop/old": "b"}
	outcome := func(pod, expected, got string, met bool) report.Outcome {
		return report.Outcome{Pod: pod, Expected: expected, Got: got, Met: met}
	}
	const unplaced = "pending: 0/2 nodes are available: 2 Insufficient cpu."
	cases := map[string]struct {
		expectation report.Expectation
		want        []report.Outcome
	}{
		"the node": {report.Expectation{Pod: "shop/web-1", Nodes: []string{"a"}},
			[]report.Outcome{outcome("shop/web-1", "a", "a", true)}},
		"another node": {report.Expectation{Pod: "shop/web-1", Nodes: []string{"b"}},
			[]report.Outcome{outcome("shop/web-1", "b", "a", false)}},
		"one of the nodes": {report.Expectation{Pod: "shop/web-1", Nodes: []string{"a", "b"}},
			[]report.Outcome{outcome("shop/web-1", "one of a, b", "a", true)}},
		"each pod of a pattern": {report.Expectation{Pod: "shop/web-*", Nodes: []string{"a"}}, []report.Outcome{
			outcome("shop/web-1", "a", "a", true), outcome("shop/web-2", "a", "b", false),
		}},
		"a pod that was bound": {report.Expectation{Pod: "shop/old", Nodes: []string{"b"}},
			[]report.Outcome{outcome("shop/old", "b", "b", true)}},
		"a pod that does not exist": {report.Expectation{Pod: "shop/none", Pending: true},
			[]report.Outcome{outcome("shop/none", "pending", "no such pod", false)}},
		"pending": {report.Expectation{Pod: "shop/big", Pending: true},
			[]report.Outcome{outcome("shop/big", "pending", unplaced, true)}},
		"the reason": {report.Expectation{Pod: "shop/big", Pending: true, Reason: "Insufficient cpu"},
			[]report.Outcome{outcome("shop/big", "pending: Insufficient cpu", unplaced, true)}},
		"another reason": {report.Expectation{Pod: "shop/big", Pending: true, Reason: "memory"},
			[]report.Outcome{outcome("shop/big", "pending: memory", unplaced, false)}},
		"a node instead of pending": {report.Expectation{Pod: "shop/web-2", Pending: true},
			[]report.Outcome{outcome("shop/web-2", "pending", "b", false)}},
		"pending instead of a node": {report.Expectation{Pod: "shop/big", Nodes: []string{"a"}},
			[]report.Outcome{outcome("shop/big", "a", unplaced, false)}},
		"evicted": {report.Expectation{Pod: "shop/low", Evicted: true},
			[]report.Outcome{outcome("shop/low", "evicted", "evicted", true)}},
		"evicted after it was placed": {report.Expectation{Pod: "shop/unlucky", Evicted: true},
			[]report.Outcome{outcome("shop/unlucky", "evicted", "evicted", true)}},
		"evicted is not pending": {report.Expectation{Pod: "shop/unlucky", Pending: true},
			[]report.Outcome{outcome("shop/unlucky", "pending", "evicted", false)}},
		"not evicted": {report.Expectation{Pod: "shop/old", Evicted: true},
			[]report.Outcome{outcome("shop/old", "evicted", "b", false)}},
		"a pattern that is malformed": {report.Expectation{Pod: "shop/[", Pending: true},
			[]report.Outcome{outcome("shop/[", "pending", "no such pod", false)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, r.Check([]report.Expectation{tc.expectation}, bound)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
