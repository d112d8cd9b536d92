//go:build linux

// Package simulate measures how long simulations of large clusters take and how much memory they need, with everything that they start, and
// compares presets on the openb trace.
package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// traceVariable names the directory with the two lists of the trace.
const traceVariable = "PMK_SCHED_OPENB"

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

// BenchmarkSimulate places pending pods in clusters of the sizes that docs/simulate.md names.
func BenchmarkSimulate(b *testing.B) {
	for _, size := range []struct{ nodes, bound, pending int }{{1_000, 5_000, 1_000}, {5_000, 20_000, 5_000}} {
		b.Run(fmt.Sprintf("%d-nodes", size.nodes), func(b *testing.B) {
			snapshot := snapshotOf(b, "--from", cluster(b, size.nodes, size.bound, size.pending))
			for b.Loop() {
				s := simulate(b, "total", snapshot)
				if s.Nodes != size.nodes || s.Pods != size.bound || s.Placed != size.pending {
					b.Errorf("got %+v", s)
				}
			}
		})
	}
}

// BenchmarkTrace places the pods of the trace, whose GPUs are an extended resource, with three configurations. The first is the default scheduler's.
func BenchmarkTrace(b *testing.B) {
	dir := os.Getenv(traceVariable)
	if dir == "" {
		b.Skip(traceVariable + " is not the directory of the openb trace")
	}
	snapshot := snapshotOf(b, "--from", filepath.Join(dir, "openb_node_list_all_node.csv"), "--from", filepath.Join(dir, "openb_pod_list_default.csv"))
	for b.Loop() {
		b.Logf("%8s  %6s  %8s  %11s  %s", "", "placed", "unplaced", "empty nodes", "utilization")
		for _, preset := range []string{"default", "binpack", "spread"} {
			var args []string
			if preset != "default" {
				args = []string{"--preset", preset}
			}
			s := simulate(b, preset, snapshot, args...)
			if s.Nodes != 1_523 || s.Placed+s.Unplaced != 8_152 {
				b.Errorf("%s: got %+v", preset, s)
			}
			b.Logf("%8s  %6d  %8d  %11d  %s", preset, s.Placed, s.Unplaced, len(s.After.EmptyNodes), utilization(s))
		}
	}
}

func utilization(s report.Summary) string {
	var texts []string
	for _, u := range s.Utilization {
		texts = append(texts, fmt.Sprintf("%s %.1f %%", u.Resource, 100*u.After))
	}
	return strings.Join(texts, ", ")
}

// snapshotOf returns the path of a snapshot from files.
func snapshotOf(b *testing.B, from ...string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "cluster.tar.gz")
	run.PMKSched(b, append([]string{"snapshot", "--to-file", file}, from...)...).OK(b)
	return file
}

// simulate places the pending pods of a snapshot, and reports the time and the memory under a name.
func simulate(b *testing.B, name, snapshot string, args ...string) report.Summary {
	b.Helper()
	watch := watchMemory(b)
	begin := time.Now()
	r := run.PMKSched(b, append([]string{"simulate", "pending", "--branch", apiserver.Release, "--snapshot", snapshot, "-o", "json"}, args...)...).OK(b)
	b.ReportMetric(time.Since(begin).Seconds(), name+"-s")
	b.ReportMetric(watch(), name+"-MiB")
	s := run.Decode[struct{ Summary report.Summary }](b, r.Stdout).Summary
	b.Logf("%s: load %.1f s, schedule %.1f s", name, s.LoadSeconds, s.ScheduleSeconds)
	return s
}

// cluster writes a list of nodes, and of pods that are bound or pending, and returns the path of the file.
func cluster(b *testing.B, nodes, bound, pending int) string {
	b.Helper()
	var items []runtime.RawExtension
	add := func(object any) {
		data, err := json.Marshal(object)
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, runtime.RawExtension{Raw: data})
	}
	for i := range nodes {
		n := largecluster.Node(i)
		n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
		add(n)
	}
	for i := range bound + pending {
		p := largecluster.Pod(i, nodes)
		p.TypeMeta, p.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, metav1.NamespaceDefault
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		if i < bound {
			p.Spec.NodeName, p.Status.Phase = largecluster.NodeName(i%nodes), corev1.PodRunning
		}
		add(p)
	}
	data, err := json.Marshal(corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: items})
	if err != nil {
		b.Fatal(err)
	}
	return run.WriteFile(b, "cluster.json", string(data))
}
