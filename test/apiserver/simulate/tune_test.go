//go:build linux

package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A search finds that other settings than today's leave nodes empty, and writes them for each kind
// of scheduler.
func TestTuneFindsSettingsThatLeaveNodesEmpty(t *testing.T) { atReleases(t, checkTune) }

func checkTune(t *testing.T, release string) {
	t.Helper()
	cluster := ""
	for i := range 4 {
		name := "n" + strconv.Itoa(i)
		cluster += node(name, 8, "", "") + pod("p"+name, "1", "", "nodeName: "+name, "phase: Running")
	}
	dir := filepath.Join(t.TempDir(), "tuned")
	report := filepath.Join(t.TempDir(), "report.html")
	r := run.PMKSched(t, "tune", "--snapshot", run.WriteFile(t, "cluster.yaml", cluster), "--branch", release,
		"--objective", "empty-nodes,unplaced", "--trials", "8", "--to-dir", dir, "--report", report,
		"-o", "json").OK(t)
	got := run.Decode[tune.Result](t, r.Stdout)
	equal(t, "trials", 8, len(got.Trials))
	for _, trial := range got.Trials {
		if trial.Error != "" {
			t.Errorf("%s: %s", trial.Name, trial.Error)
		}
	}
	best := got.Points[0]
	if !best.Front || best.Figures[0] != 3 || best.Figures[1] != 0 {
		t.Errorf("got %+v", best)
	}
	today := slices.IndexFunc(got.Points, func(p tune.Point) bool { return p.Name == tune.Today })
	if today < 0 || got.Points[today].Front || got.Points[today].Figures[0] != 0 {
		t.Errorf("today: %+v", got.Points)
	}
	equal(t, "choices", 2, len(got.Choices)) // one for each objective
	for _, c := range got.Choices {
		if !c.NoWorse {
			t.Errorf("a preset is better than the choice: %+v", c)
		}
	}
	points, err := filepath.Glob(filepath.Join(dir, "1-*", "*.yaml"))
	if err != nil || len(points) != 3 {
		t.Errorf("files of the first point: %v, %v", points, err)
	}
	text, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(text), `<circle class="today"`) {
		t.Errorf("no picture with today's configuration: %v", err)
	}
}
