//go:build linux && (cases || releases)

package simulate

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// The same plugin runs as the user and in the sandbox: it decides the same, and finds something
// only as the user.
func TestRecordedPluginsReachOnlyTheSimulatedAPIServer(t *testing.T) {
	cluster := node("a", 64, "curious: node", "") + node("b", 8, "", "") + pod("large", "9", "", "", "")
	for i := range 5 {
		cluster += pod(fmt.Sprint("web-", i), "1", "", "", "")
	}
	var reports [2]*report.Report
	var found [2][]string
	withSimulator(t, apiserver.Release, func(s *simulator) error {
		for i, recorded := range []bool{false, true} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			o := s.options(t, newObjects(t, cluster), pack.Scheduler{})
			o.Scenario, o.Scheduler = scenario.Pending(), curious(t, s, recorded, l.Addr().String())
			if err := os.RemoveAll(curiousFile); err != nil { // the build runs the program, too
				return err
			}
			if reports[i], err = s.server.Run(t.Context(), o); err != nil {
				return err
			}
			found[i] = findings(t, o.Dir)
			if _, err := os.Stat(curiousFile); (err == nil) == recorded {
				t.Errorf("recorded %t: the file of the plugin: %v", recorded, err)
			}
			if left, _ := filepath.Glob(filepath.Join(o.Dir, "root-*")); len(left) > 0 {
				t.Errorf("files left: %v", left)
			}
		}
		return os.RemoveAll(curiousFile)
	})
	equal(t, "placements", reports[0].Placements, reports[1].Placements)
	equal(t, "refused pods", reports[0].Unplaced, reports[1].Unplaced)
	if len(reports[1].Placements) != 5 || len(reports[1].Unplaced) != 1 {
		t.Errorf("got %+v", reports[1])
	}
	if !slices.ContainsFunc(reports[1].Notes, func(note string) bool { return strings.Contains(note, "sandbox") }) {
		t.Errorf("notes %q", reports[1].Notes)
	}
	for _, finding := range []string{"wrote", "listed processes", "read", "sent", "may have the API server connect"} {
		if !slices.Contains(found[0], finding+" true") || !slices.Contains(found[1], finding+" false") {
			t.Errorf("%s: as the user %q, in the sandbox %q", finding, found[0], found[1])
		}
	}
	files := slices.DeleteFunc(found[1], func(text string) bool { return !strings.HasPrefix(text, "file ") })
	equal(t, "files in the sandbox",
		[]string{"file kubeconfig", "file output", "file program", "file scheduler.yaml"}, files)
}

// findings returns what the plugin has logged.
func findings(t *testing.T, dir string) (all []string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "kube-scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if finding, ok := strings.CutPrefix(strings.TrimSpace(line), "curious: "); ok {
			all = append(all, finding)
		}
	}
	return all
}
