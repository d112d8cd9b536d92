//go:build linux

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The manifest of Platform9's article, as it is printed over several pages, ends in a scheduler, in
// one command. Its image is a placeholder, and its kubeconfig is cut short.
func TestManifestOfTheArticleBecomesAScheduler(t *testing.T) {
	migratesArticle(t, "manifest-as-printed.yaml")
}

func migratesArticle(t *testing.T, file string) {
	t.Helper()
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	printed, err := os.ReadFile(filepath.Join(run.Root(), "test/testdata/article", file))
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), file)
	// Other tests have a scheduler of that name.
	text := strings.ReplaceAll(string(printed), "my-scheduler", name)
	if err := os.WriteFile(named, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.UninstallLater(t, name)
	n.PMKSched(t, append([]string{"migrate", "-f", named, "--apply", "--yes"}, labs.Stable("1s")...)...).
		Prints(t, "is deployed", "and schedules", "private key", "is a placeholder")
}
