package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
)

func TestTableOfTestsFitsATerminalAndHasTheWholeReasonBelow(t *testing.T) {
	const reason = "pending: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {team: x}. " +
		"preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling"
	run := policytest.Result{Release: "v1.24.3", Test: "scenario.yaml", Expectations: []policytest.Outcome{
		{Name: "default/quiet: node node-with-a-long-name-1", Expected: "node node-1", Got: reason},
		{Name: "default/other", Expected: "node node-1", Got: "node-1", Met: true},
	}}
	table, rest, _ := strings.Cut(command.Aligned(testTable([]policytest.Result{run})), "\n\n")
	for _, line := range strings.Split(table, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if !strings.Contains(table, "…") || !strings.Contains(table, "FAILED") || !strings.Contains(table, "  node-1") {
		t.Errorf("table:\n%s", table)
	}
	if !strings.Contains(rest, reason) {
		t.Errorf("below the table:\n%s", rest)
	}
}

func TestNarrowTablesAreNotShortened(t *testing.T) {
	var p printer
	p.fitted([][]string{{"A", "B"}, {"x", strings.Repeat("y", 70)}}, 0, 1)
	if text := p.String(); strings.Contains(text, "…") {
		t.Errorf("got %q", text)
	}
	p = printer{}
	p.fitted([][]string{{strings.Repeat("x", 100), "abcdefghi"}}, 1)
	if text := p.String(); !strings.HasSuffix(text, "abcdefg…\n") {
		t.Errorf("got %q", text)
	}
}
