//go:build linux && cases

package simulate

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
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
