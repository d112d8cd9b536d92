//go:build linux

package simulate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The scheduler that packs leaves room for the pod that the default scheduler has none for, and
// nodes without pods.
func TestDemoOfForesightWritesAReport(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "foresight.html")
	demo := exec.CommandContext(run.Context(t), "hack/demo-foresight.sh")
	demo.Dir, demo.Env = run.Root(), append(os.Environ(), "REPORT="+page, "BRANCH="+apiserver.Release)
	out := run.Command(t, demo).OK(t)
	out.Prints(t, "pods: 168 running, 1 pending", "145 of 145 pods placed on 24 nodes by packer",
		"it places 144 and 144 pods", "NODE TYPE", page)
	if strings.Contains(out.Stdout, "of empty nodes 0 → 0") || !strings.Contains(out.Stdout, "of empty nodes 0 → ") {
		t.Errorf("no node becomes empty: %s", out)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "training-0") {
		t.Errorf("the report has %d bytes, %v", len(text), err)
	}
}
