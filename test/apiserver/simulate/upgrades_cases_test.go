//go:build linux && (cases || releases)

package simulate

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// An upgrade to the same release changes nothing, and says what it does not know.
func TestUpgradeToTheSameReleaseChangesNothing(t *testing.T) {
	t.Parallel()
	r := upgraded(t, apiserver.Release, apiserver.Release, 0)
	equal(t, "differences", 0, len(r.Placements.Differences)+len(r.Gates)+len(r.Plugins)+len(r.New)+len(r.Fixed))
	if p := r.Placements; p.Same == 0 || p.Same+p.Ties != p.Pods {
		t.Errorf("got %+v", p)
	}
	if len(r.Unknown) == 0 {
		t.Error("nothing is unknown")
	}
}

// upgraded compares the default scheduler at two releases with the command, on a snapshot that has
// pods for the known changes of all releases.
func upgraded(t *testing.T, from, to string, status int) upgrades.Result {
	t.Helper()
	file := filepath.Join(run.Root(), "test", "testdata", "upgrades.yaml")
	r := run.PMKSched(t, "simulate", "upgrade", "--snapshot", file, "--from", from, "--to", to, "-o", "json")
	if status == 0 {
		r.OK(t)
	} else {
		r.Fails(t, status, "differs between "+from+" and "+to)
	}
	return run.Decode[upgrades.Result](t, r.Stdout)
}
