package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// large is a result with many nodes and pods.
func large(nodes, podsOnEach int) *report.Report {
	r := &report.Report{Scenario: "replace-all", Release: "v1.24.3", Scheduler: "default-scheduler"}
	var before, after report.Usage
	name := func(i int) string { return fmt.Sprintf("worker-%04d.region-1.example.internal", i) }
	for i := range nodes {
		before.AddNode(node(name(i), fmt.Sprint("zone-", i%3), 64))
		after.AddNode(node(name(i), fmt.Sprint("zone-", i%3), 64))
		for j := range podsOnEach {
			p := fmt.Sprintf("deployment-%d-5d4f9c7b8d-%05d", j, i)
			ns := fmt.Sprintf("team-%d", j%40)
			to := name((i*7 + j) % nodes)
			before.AddPod(pod(ns, p, name(i), "750m"))
			after.AddPod(pod(ns, p, to, "750m"))
			r.Placements = append(r.Placements, report.Placement{Namespace: ns, Name: p, From: name(i), Node: to})
		}
	}
	r.Measure(&before, &after)
	r.Finish()
	return r
}

func TestLargeClustersHaveHeatMapsInASmallFile(t *testing.T) {
	const limit = 5 << 20
	for name, tc := range map[string]struct {
		nodes, pods int
		heat        bool
	}{
		"bars":              {500, 20, false},
		"a heat map":        {1000, 30, true},
		"without the pods":  {1000, 45, true},
		"very many of them": {5000, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := write(t, large(tc.nodes, tc.pods))
			if len(text) > limit {
				t.Errorf("%d bytes", len(text))
			}
			if heat := strings.Contains(text, `<svg class="heat"`); heat != tc.heat {
				t.Errorf("a heat map: %t, want %t", heat, tc.heat)
			}
			hidden := strings.Contains(text, "The charts do not show single pods")
			if want := tc.nodes*tc.pods > 30_000; hidden != want {
				t.Errorf("pods are hidden: %t, want %t", hidden, want)
			}
			if !strings.Contains(text, "more are in the output of -o json") {
				t.Error("the page does not count the rest of the list")
			}
		})
	}
}
