//go:build linux && cases

package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The default scheduler spreads, the other one packs: the pod's node differs by configuration. One
// that has only one node does not.
func TestSchedulersAreCompared(t *testing.T) {
	t.Parallel()
	file := snapshotOf(t, node("half", 4, "", "")+node("empty", 4, "pool: a", "")+
		pod("running", "2", "", "nodeName: half", "phase: Running")+pod("new", "1", "", "", "")+pod("bound-to-a", "100m",
		`creationTimestamp: "2026-01-01T00:00:00Z"`, "nodeSelector: {pool: a}", ""))
	page := filepath.Join(t.TempDir(), "report.html")
	r := simulateSnapshot(t, "pending", file, "-f", run.WriteFile(t, "packer.yaml", packer), "--against", "default",
		"--report", page)
	c := r.Comparison
	if c == nil {
		t.Fatal("no comparison")
	}
	want := []report.Difference{{Namespace: "shop", Name: "new", Node: "half", Baseline: "empty", Repeated: "empty"}}
	equal(t, "differences", want, c.Differences)
	equal(t, "same and noise", [2]int{1, 0}, [2]int{c.Same, len(c.Noise)})
	equal(t, "scheduler", "default-scheduler", c.Scheduler)
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "bound-to-a") || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("the report has %d bytes, %v", len(text), err)
	}
}

const packer = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: packer}
spec: {configuration: {preset: binpack}}
`
