//go:build replace

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

// others are the release that PMK's public node agent is of, and the newest, whose kubelet sees no change in a container but that of
// its image.
var others = []shape{{lab.LayoutPMK, "v1.21.3"}, {lab.LayoutKubeadm, "v1.37.1"}}

// On kubeadm's the configuration alone is replaced too.
func TestOtherReleasesAreReplacedAndRestored(t *testing.T) {
	for _, s := range others {
		t.Run(s.String(), func(t *testing.T) {
			m := replaceAndRestore(t, s)
			if s.layout == lab.LayoutPMK {
				return
			}
			m.pmkSched(t, "replace", "--preset", "binpack", "--yes", "--steady", "1s").ok(t)
			m.pmkSched(t, "replace", "--preset", "spread", "--yes", "--steady", "1s").ok(t)
			m.pmkSched(t, "verify", "--default").ok(t)
			m.pmkSched(t, "restore", "--yes").ok(t)
			m.isOriginal(t)
		})
	}
}

func BenchmarkReplaceOtherReleases(b *testing.B) {
	for _, s := range others {
		b.Run(s.String(), func(b *testing.B) { measure(b, s) })
	}
}
