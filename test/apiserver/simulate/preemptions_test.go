//go:build linux

package simulate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func priorityClass(name string, value int, more string) string {
	return fmt.Sprintf("---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\n%s\n", name,
		value, more)
}

// evictions is a full node of three pods, one of which has a budget, and a full node of pods of the
// highest priority.
func evictions() string {
	classed := func(class string, priority int, node string) string {
		return fmt.Sprintf("priorityClassName: %s\npriority: %d\nnodeName: %s", class, priority, node)
	}
	return priorityClass("high", 1000, "") + priorityClass("batch", 10, "") +
		priorityClass("low", 5, "") + priorityClass("patient", 500,
		"preemptionPolicy: Never") +
		node("a", 4, "", "") + node("b", 4, "", "") +
		pod("job-1", "1", "labels: {app: job}", classed("low", 5, "a"),
			"phase: Running, startTime: \"2026-01-01T00:00:00Z\"") +
		pod("job-2", "1", "labels: {app: job}", classed("low", 5, "a"),
			"phase: Running, startTime: \"2026-01-02T00:00:00Z\"") +
		pod("free", "2", "", "nodeName: a", "phase: Running") +
		pod("db", "4", "", classed("high", 1000, "b"), "phase: Running") + `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: job, namespace: shop}
spec: {minAvailable: 2, selector: {matchLabels: {app: job}}}
status: {disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 2}
`
}

// rowsBelow returns the rows of a table whose first column has that name, with a | between cells.
func rowsBelow(table, column string) (rows []string) {
	_, below, _ := strings.Cut(table, "\n"+column+" ")
	for _, line := range strings.Split(below, "\n")[1:] {
		if line == "" {
			break
		}
		rows = append(rows, padding.ReplaceAllString(strings.TrimRight(line, " "), "|"))
	}
	return rows
}

// padding is between the columns of a table.
var padding = regexp.MustCompile(" {2,}")

// Each landing is decided in the state of the snapshot: the highest class evicts everything on a
// node, in spite of a budget, and the pods are there again for the next class. Schedulers evict in
// a goroutine from 1.33 on, and clear the nomination from 1.34 on.
func TestPodOfEachClassLandsInTheStateOfTheSnapshot(t *testing.T) {
	atReleases(t, checkLandings)
}

func checkLandings(t *testing.T, release string) {
	t.Helper()
	args := []string{"simulate", "preemptions", "--snapshot", run.WriteFile(t, "cluster.yaml", evictions()), "--branch",
		release, "--requests"}
	table := run.PMKSched(t, append(args, "cpu=3")...).OK(t).Stdout
	landings := rowsBelow(table, "A POD OF CLASS")
	for i, row := range landings {
		if before, reason, none := strings.Cut(row, "no node: "); none {
			if !strings.Contains(reason, "Insufficient cpu") || !strings.HasSuffix(reason, "|-") {
				t.Errorf("got %q, want the reason of the scheduler and no evicted pod", row)
			}
			landings[i] = before + "no node"
		}
	}
	equal(t, "landings", []string{"high|cpu=3|a|shop/free, shop/job-2 in spite of job", "patient|cpu=3|no node",
		"batch|cpu=3|a|shop/free, shop/job-2 in spite of job", "low|cpu=3|no node", "(none)|cpu=3|no node"}, landings)
	equal(t, "classes", []string{"high|1000|yes|1|0|low, (none)|3|-", "patient|500|no|0|0|-|0|-",
		"batch|10|yes|0|0|low, (none)|3|-", "low|5|yes|2|0|(none)|1|high, batch", "(none)|0|yes|1|0|-|0|high, batch, low"},
		rowsBelow(table, "CLASS"))
	equal(t, "workloads", []string{"shop/Pod/free|(none)|0|1|high, batch, low|-", "shop/Pod/job-1|low|5|1|high, batch|job",
		"shop/Pod/job-2|low|5|1|high, batch|job"}, rowsBelow(table, "WORKLOAD"))
	equal(t, "namespaces", []string{"shop|shop|high|3"}, rowsBelow(table, "PODS OF NAMESPACE"))
	budgets := rowsBelow(table, "BUDGET")
	if len(budgets) != 2 || !strings.HasPrefix(budgets[1], "shop/job|minAvailable 2|2|0|pods of high, batch may evict 2") {
		t.Errorf("budgets: %q", budgets)
	}
	if !strings.Contains(table, "\nclass patient: no pod uses it\n") {
		t.Errorf("no class without pods:\n%s", table)
	}
	run.PMKSched(t, append(args, "cpu")...).Fails(t, 2, `invalid --requests "cpu": must be RESOURCE=AMOUNT`)
}
