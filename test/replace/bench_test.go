package replace

import "testing"

// BenchmarkReplace tells how long nothing schedules while the default scheduler is replaced, on each shape
// of master. 25 seconds are the most that it should be, on a machine that does nothing else.
func BenchmarkReplace(b *testing.B) {
	for _, s := range []shape{kubeadm, pmk} {
		b.Run(s.String(), func(b *testing.B) {
			m := lend(b, s)
			image := m.ours(b)
			var seconds float64
			for range b.N {
				replaced := decode[outcome](b, m.pmkSched(b, "replace", "--image", image, "--yes", "-o", "json").ok(b).stdout)
				seconds += replaced.SecondsWithoutScheduler
				m.pmkSched(b, "restore", "--yes").ok(b)
				b.StopTimer()
				m.forget(b)
				b.StartTimer()
			}
			b.ReportMetric(seconds/float64(b.N), "s-without-scheduler")
		})
	}
}
