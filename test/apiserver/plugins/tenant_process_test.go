//go:build linux && (cases || releases)

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

// The resident memory of a scheduler may grow by moreMiB during an attack: it decodes large pods
// again with each change of their statuses, and its heap keeps its size for a while after that.
// When the objects of the attackers are gone, it may have moreGoroutines and moreHeapMiB of objects
// more than before the attack.
const (
	moreMiB        = 1024
	moreHeapMiB    = 64
	moreGoroutines = 100
)

// process is the state of a scheduler before an attack.
type process struct {
	x   *siege
	pid int
	usage
}

// usage is the resident memory of a scheduler and the memory of its objects in MiB, and the number
// of its goroutines.
type usage struct{ mib, heap, goroutines float64 }

func (u usage) String() string {
	return fmt.Sprintf("%.0f MiB, %.0f MiB of objects, %.0f goroutines", u.mib, u.heap, u.goroutines)
}

func (x *siege) observeProcess(t *testing.T) *process {
	t.Helper()
	p := &process{x: x, pid: x.scheduler.PID()}
	p.usage = p.read(t)
	return p
}

func (p *process) read(t *testing.T) usage {
	t.Helper()
	metrics, err := controlplane.ReadMetrics(t.Context(), p.x.metrics)
	if err != nil {
		t.Fatal(err)
	}
	one := func(name string) float64 { return metrics.By(t, name, "")[""] }
	return usage{one("process_resident_memory_bytes") / (1 << 20), one("go_memstats_heap_alloc_bytes") / (1 << 20),
		one("go_goroutines")}
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
	now := p.read(t)
	t.Logf("the scheduler has %s; before the attack %s", now, p.usage)
	seconds := map[string]string{}
	for point, h := range measured.Parse(string(metrics)).Histograms(
		"scheduler_framework_extension_point_duration_seconds", "extension_point") {
		seconds[point] = fmt.Sprintf("%.3f", h.Sum)
	}
	t.Logf("attempts %v; seconds of extension points %v", metrics.By(t, "scheduler_schedule_attempts_total", "result"),
		seconds)
	if now.mib > p.mib+moreMiB {
		t.Errorf("the memory of the scheduler grew from %.0f to %.0f MiB", p.mib, now.mib)
	}
}

// settle is check after the objects of the attackers are gone: what the scheduler began for them
// ends, and their objects are freed. Go collects garbage every two minutes at least.
func (p *process) settle(t *testing.T) {
	t.Helper()
	run.Eventually(t, "the scheduler frees what the attackers' objects needed", func(context.Context) (bool, string) {
		now := p.read(t)
		return now.goroutines < p.goroutines+moreGoroutines && now.heap < p.heap+moreHeapMiB,
			fmt.Sprintf("%s; before the attack %s", now, p.usage)
	})
	p.check(t)
}
