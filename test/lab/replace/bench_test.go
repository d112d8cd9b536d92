package replace

import "testing"

// BenchmarkReplace tells how long nothing schedules while the default scheduler is replaced, on each shape of master.
func BenchmarkReplace(b *testing.B) {
	for _, s := range []shape{kubeadm, pmk} {
		b.Run(s.String(), func(b *testing.B) { measure(b, s) })
	}
}

// measure replaces and restores. 25 seconds are the most that may pass without a scheduler.
func measure(b *testing.B, s shape) {
	m := lend(b, s)
	image := m.ours(b)
	var seconds float64
	for b.Loop() {
		replaced := decode[outcome](b, m.pmkSched(b, "replace", "--image", image, "--yes", "-o", "json").ok(b).stdout)
		seconds += replaced.SecondsWithoutScheduler
		m.pmkSched(b, "restore", "--yes").ok(b)
		b.StopTimer()
		m.forget(b)
		b.StartTimer()
	}
	mean := seconds / float64(b.N)
	b.ReportMetric(mean, "s-without-scheduler")
	if mean <= 0 || mean > 25 {
		b.Errorf("%.1f s without any scheduler, want at most 25 s, and those told", mean)
	}
}
