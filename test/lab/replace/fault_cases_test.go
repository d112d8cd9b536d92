//go:build linux && cases

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// A scheduler that runs at first and ends within the stability window is reverted.
func TestReplaceIsRevertedWhenTheSchedulerCrashes(t *testing.T) {
	failure{
		"ends after 2 seconds", "crash-later", lab.LayoutKubeadm, labs.Stable("6s"),
		[]string{"exit status 7", "this scheduler ends after 2 seconds"},
	}.isReverted(t)
}

func TestReplaceKilledAfterTheSwapIsRestoredOrResumed(t *testing.T) {
	restoredOrResumed(t, exclusive(t, lab.LayoutPMK), "swap")
}
