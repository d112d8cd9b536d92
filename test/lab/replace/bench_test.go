//go:build linux

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// samples is how often each layout is measured.
const samples = 3

// BenchmarkReplace measures how long no scheduler runs while the default one is replaced, with the flags of a user, on each layout in
// turn. It is the number in docs/replace.md.
func BenchmarkReplace(b *testing.B) {
	for _, layout := range []string{lab.LayoutKubeadm, lab.LayoutPMK} {
		b.Run(layout, func(b *testing.B) { measure(b, exclusive(b, layout)) })
	}
}

// measure replaces and restores.
func measure(b *testing.B, n *node) {
	b.Helper()
	image := n.Image(b, "timestamp")
	var sum, longest float64
	count := 0
	for b.Loop() {
		for range samples {
			n.forgetRestarts(b)
			replaced := run.Decode[outcome](b, n.PMKSched(b, "replace", "--image", image, "--yes", "-o", "json").OK(b).Stdout)
			if replaced.SecondsWithoutScheduler <= 0 {
				b.Errorf("%.1f s without a scheduler", replaced.SecondsWithoutScheduler)
			}
			sum, longest = sum+replaced.SecondsWithoutScheduler, max(longest, replaced.SecondsWithoutScheduler)
			count++
			n.PMKSched(b, "restore", "--yes").OK(b)
		}
	}
	b.ReportMetric(sum/float64(count), "s-without-scheduler")
	b.ReportMetric(longest, "s-longest")
}
