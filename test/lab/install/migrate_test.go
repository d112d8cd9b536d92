//go:build linux

package install

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The manifest of Platform9's article ends in a scheduler, in one command: as it is printed, over
// several pages, and as it is meant. Its image is a placeholder, and its kubeconfig is cut short.
func TestManifestOfTheArticleBecomesAScheduler(t *testing.T) {
	n := labs.Shared(t, "pmk")
	n.UninstallLater(t, "my-scheduler")
	for _, file := range []string{"manifest-as-printed.yaml", "manifest.yaml"} {
		path := filepath.Join(run.Root(), "test/testdata/article", file)
		n.PMKSched(t, append([]string{"migrate", "-f", path, "--apply", "--yes"}, labs.Stable("1s")...)...).
			Prints(t, "is deployed", "and schedules", "private key", "is a placeholder")
		n.Uninstall(t, "my-scheduler")
	}
}
