//go:build linux

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/pages"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The commands of the page for readers of the article print what the page shows, on a PMK master.
func TestPageOfTheArticleIsTrue(t *testing.T) {
	runPage(t, labs.Shared(t, "pmk"), "start-article.md")
}

// runPage runs a page on a lab: its commands for a master as root there, and the others on this
// machine with an administrator's kubeconfig. The stability window is short, except with -update: a
// page shows the seconds of a user.
func runPage(t *testing.T, n *labs.Node, page string) {
	t.Helper()
	window := "10s"
	if !golden.Updates() {
		window = "1s"
	}
	shell := func(t *testing.T, place, dir, command string) (string, error) {
		var cmd *exec.Cmd
		switch place {
		case "master":
			cmd = n.Command(run.Context(t), t, "env", path(t), labs.EnvStableFor+"="+window, "sh", "-ec", command)
		case "laptop":
			cmd = exec.CommandContext(run.Context(t), "sh", "-ec", command)
			cmd.Env = append(os.Environ(), path(t), labs.EnvStableFor+"="+window, "KUBECONFIG="+n.Lab.Kubeconfig(),
				"PMK_SCHED_NODE_ROOT=none")
		default:
			t.Fatalf("%s runs on %q, which this test does not know", page, place)
		}
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	pages.Run(t, filepath.Join(run.Root(), "docs", page), run.Root(), shell)
}
