//go:build linux && labs

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// others are the release of PMK's public node agent, and the newest, whose kubelet sees no change in a container other than that of its
// image.
var others = []labs.Options{{Release: "v1.21.3", Layout: lab.LayoutPMK}, {Release: "v1.37.1", Layout: lab.LayoutKubeadm}}

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

func BenchmarkReplaceOtherReleases(b *testing.B) {
	for _, o := range others {
		b.Run(o.Layout+"-"+o.Release, func(b *testing.B) { measure(b, prepare(b, labs.Start(b, o), manifests[o.Layout])) })
	}
}
