//go:build linux && cases

package simulate

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestSlowPluginIsNamedAndFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	create := exec.CommandContext(run.Context(t), run.Program(t), "plugin", "new", "--branch", apiserver.Release, "Sleepy")
	create.Dir = dir
	run.Command(t, create).OK(t)
	if err := os.WriteFile(filepath.Join(dir, "sleepy", "sleepy.go"), []byte(sleepy), 0o600); err != nil {
		t.Fatal(err)
	}
	result := run.PMKSched(t, "bench", "--nodes", "40", "--pods", "100", "--samples", "2", "--branch", apiserver.Release,
		"--with", filepath.Join(dir, "sleepy"),
		"--fail-below", "0.9", "-o", "json")
	result.Fails(t, 3, "less than 0.9; its slowest plugin is Sleepy at Filter")
	r := run.Decode[bench.Result](t, result.Stdout)
	if p := r.This.Plugins[0]; p.Plugin != "Sleepy" || p.Point != "Filter" || p.MicrosecondsPerCall < 5000 {
		t.Errorf("the slowest plugin is %+v", p)
	}
	against := r.Against[0]
	if against.Ratio <= 0 || against.Ratio >= 0.9 {
		t.Errorf("ratio %v of %v and %v, notes %q", against.Ratio, r.This.Rates, against.Rates, r.Notes)
	}
	equal(t, "rates of both, nodes, pods and unbound pods", [5]int{2, 2, 40, 100, 0},
		[5]int{len(r.This.Rates), len(against.Rates), r.Nodes, r.Pods, r.This.Unbound + against.Unbound})
	if a, b := r.This.Attempt, against.Attempt; a.P50 <= 0 || a.P99 < a.P50 || b.P50 <= 0 || b.P99 < b.P50 {
		t.Errorf("attempts %+v, of the other scheduler %+v", a, b)
	}
	metrics := map[string]bool{}
	for _, item := range r.DataItems {
		metrics[item.Labels["side"]+" "+item.Labels["Metric"]] = true
		if item.Data["Average"] < 0 || item.Unit == "" || item.Labels["Name"] != "Alike/100Pods" {
			t.Errorf("data item %+v", item)
		}
	}
	for _, want := range []string{
		"this SchedulingThroughput", "default SchedulingThroughput", "this scheduler_scheduling_attempt_duration_seconds",
		"this scheduler_plugin_execution_duration_seconds",
	} {
		if !metrics[want] || r.Version != "v1" {
			t.Errorf("data items of version %s lack %s: %v", r.Version, want, metrics)
		}
	}
}

// Nodes of a snapshot are measured with the pods on them. Pods that do not fit are reported.
func TestNodesOfASnapshotAreMeasured(t *testing.T) {
	t.Parallel()
	file := snapshotOf(t, node("a", 4, "", "")+node("b", 4, "",
		"unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]")+
		pod("running", "3800m", "", "nodeName: a", "phase: Running")+pod("pending", "1", "", "", "phase: Pending"))
	// Plugins are measured in one cycle of ten: with so few pods possibly in none.
	run.PMKSched(t, "bench", "--snapshot", file, "--pods", "30", "--samples", "1", "--branch", apiserver.Release).OK(t).
		Prints(t, "30 pods on 2 nodes", "this did not bind 10 pods", "default did not bind 10 pods", "EXTENSION POINT")
	run.PMKSched(t, "bench", "--nodes", "5").Fails(t, 2, "--nodes needs the release")
	run.PMKSched(t, "bench", "--nodes", "5", "--snapshot", file).Fails(t, 2, "exclude each other")
	run.PMKSched(t, "bench", "--upstream", "short").Fails(t, 2, "--upstream needs the release")
	run.PMKSched(t, "bench", "--upstream", "short", "--branch", apiserver.Release).Fails(t, 2, "its harness is not exported")
}

// sleepy is a plugin that sleeps for every node.
const sleepy = `// Package sleepy is slow.
package sleepy

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name.
const Name = "Sleepy"

// Sleepy sleeps.
type Sleepy struct{}

// New returns the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Sleepy, error) { return &Sleepy{}, nil }

// Name returns the plugin's name.
func (*Sleepy) Name() string { return Name }

// Filter sleeps and accepts the node.
func (*Sleepy) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	time.Sleep(5 * time.Millisecond)
	return nil
}
`
