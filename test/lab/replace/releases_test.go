//go:build linux && labs

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// On kubeadm the configuration alone is replaced too.
func TestOtherReleasesAreReplacedAndRestored(t *testing.T) {
	for _, o := range others {
		t.Run(o.Layout+"-"+o.Release, func(t *testing.T) {
			n := prepare(t, labs.Start(t, o), manifests[o.Layout])
			replaceAndRestore(t, n)
			if o.Layout == lab.LayoutPMK {
				return
			}
			n.replace(t, "--preset", "binpack").OK(t)
			n.replace(t, "--preset", "spread").OK(t)
			n.PMKSched(t, "verify", "--default").OK(t)
			n.restore(t)
		})
	}
}
