//go:build linux && (labs || faults)

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// statusReport is the part of status -o json that these tests read.
type statusReport struct {
	Server     string `json:"server"`
	Requests   int    `json:"requests"`
	Schedulers []struct {
		Name     string `json:"name"`
		Ready    int    `json:"ready"`
		Revision int    `json:"revision"`
		Replicas []struct {
			Node  string `json:"node"`
			Leads bool   `json:"leads"`
		} `json:"replicas"`
		Scheduling *struct {
			Scheduled int     `json:"scheduled"`
			P99       float64 `json:"p99Seconds"`
			Leading   int     `json:"leading"`
			Unknown   string  `json:"unknown"`
		} `json:"scheduling"`
	} `json:"schedulers"`
	Findings []struct {
		Code string `json:"code"`
	} `json:"findings"`
}

// status reads the status of one scheduler, which may have findings.
func status(t *testing.T, n *labs.Node, name string) (statusReport, run.Result) {
	t.Helper()
	r := n.PMKSched(t, "status", "--name", name, "-o", "json")
	if r.Code != 0 && r.Code != 3 {
		t.Fatal(r)
	}
	return run.Decode[statusReport](t, r.Stdout), r
}

// expectFindings waits until the status has exactly these findings.
func expectFindings(t *testing.T, n *labs.Node, name string, want ...string) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("the findings are %v", want), func(context.Context) (bool, string) {
		report, r := status(t, n, name)
		var codes []string
		for _, f := range report.Findings {
			codes = append(codes, f.Code)
		}
		return strings.Join(codes, " ") == strings.Join(want, " ") && (r.Code == 3) == (len(want) > 0), r.String()
	})
}
