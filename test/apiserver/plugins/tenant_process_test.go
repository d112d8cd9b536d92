//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	measured "github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// moreGoroutines and moreMiB are what a scheduler may have more than before an attack when the pods
// of the attackers are gone. The heap keeps its size for a while after objects are deleted.
const (
	moreGoroutines = 100
	moreMiB        = 512
)

// process is the state of a scheduler before an attack.
type process struct {
	x          *siege
	pid        int
	mib        float64
	goroutines float64
}

func (x *siege) observeProcess(t *testing.T) *process {
	t.Helper()
	p := &process{x: x, pid: x.scheduler.PID()}
	p.mib, p.goroutines = p.read(t)
	return p
}

// read returns the resident memory of the scheduler in MiB and the number of its goroutines.
func (p *process) read(t *testing.T) (mib, goroutines float64) {
	t.Helper()
	metrics, err := controlplane.ReadMetrics(t.Context(), p.x.metrics)
	if err != nil {
		t.Fatal(err)
	}
	one := func(name string) float64 { return metrics.By(t, name, "")[""] }
	return one("process_resident_memory_bytes") / (1 << 20), one("go_goroutines")
}

// check checks that the scheduler has not ended, that no plugin has panicked, and that the memory
// is within its bounds.
func (p *process) check(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(p.pid, 0); err != nil || p.x.scheduler.PID() != p.pid {
		t.Fatalf("the scheduler has ended: %v", err)
	}
	metrics, err := controlplane.ReadMetrics(t.Context(), p.x.metrics)
	if err != nil {
		t.Fatal(err)
	}
	if panics := metrics.By(t, "pmk_sched_plugin_panics_total", "extension_point"); len(panics) > 0 {
		t.Errorf("panics of plugins: %v", panics)
	}
	if log := p.x.scheduler.Log(); strings.Contains(log, "panic") {
		at := strings.Index(log, "panic")
		t.Errorf("the log has a panic:\n%s", log[at:min(len(log), at+2000)])
	}
	mib, goroutines := p.read(t)
	t.Logf("the scheduler has %.0f MiB and %.0f goroutines; before the attack %.0f MiB and %.0f", mib, goroutines, p.mib,
		p.goroutines)
	seconds := map[string]string{}
	for point, h := range measured.Parse(string(metrics)).Histograms(
		"scheduler_framework_extension_point_duration_seconds", "extension_point") {
		seconds[point] = fmt.Sprintf("%.3f", h.Sum)
	}
	t.Logf("attempts %v; seconds of extension points %v", metrics.By(t, "scheduler_schedule_attempts_total", "result"),
		seconds)
	if mib > p.mib+moreMiB {
		t.Errorf("the memory of the scheduler grew from %.0f to %.0f MiB", p.mib, mib)
	}
}

// settle is check after the pods of the attackers are gone: what the scheduler began for them ends.
func (p *process) settle(t *testing.T) {
	t.Helper()
	run.Eventually(t, "the goroutines of the scheduler end", func(context.Context) (bool, string) {
		_, goroutines := p.read(t)
		return goroutines < p.goroutines+moreGoroutines, fmt.Sprintf("%.0f, before the attack %.0f", goroutines,
			p.goroutines)
	})
	p.check(t)
}
