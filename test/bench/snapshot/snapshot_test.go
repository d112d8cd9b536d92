//go:build linux

// Package snapshot measures how long a snapshot of a large cluster takes and how much memory it
// needs, with names and without.
package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// The size that docs/snapshot.md names.
const (
	nodes      = 5_000
	pods       = 50_000
	namespaces = 50
	// rounds is how often each side is measured, in turn; the median counts.
	rounds = 3
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(apiserver.Main(m, &server))
}

func BenchmarkSnapshot(b *testing.B) {
	fill(b)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, ""); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "cluster.tar.gz")
	sides := map[string][]string{
		"snapshot":  {run.Program(b), "snapshot", "--kubeconfig", kubeconfig, "--to-file", file},
		"anonymize": {run.Program(b), "snapshot", "--kubeconfig", kubeconfig, "--to-file", file, "--anonymize"},
	}
	took, memory := map[string]samples.Set{}, map[string]samples.Set{}
	for b.Loop() {
		for round := range rounds {
			for _, name := range samples.Turn([]string{"snapshot", "anonymize"}, round) {
				seconds, mebibytes := measure(b, sides[name])
				took[name], memory[name] = append(took[name], seconds), append(memory[name], mebibytes)
			}
		}
	}
	for name := range sides {
		b.Logf("%s: %.1f s, %.0f MiB", name, took[name], memory[name])
		b.ReportMetric(took[name].Median(), name+"-s")
		b.ReportMetric(memory[name].Median(), name+"-MiB")
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "file-MiB")
}

// measure runs a command and returns its time and the memory that it had at most.
func measure(b *testing.B, args []string) (seconds, mebibytes float64) {
	b.Helper()
	start := time.Now()
	result, used := run.Measure(b, args...)
	result.OK(b)
	return time.Since(start).Seconds(), used.MiB
}

// fill stores the nodes, and pods of which nine in ten are bound, of the size that pods of
// Deployments have.
func fill(b *testing.B) {
	b.Helper()
	kube := server.Client(b)
	var objects []metav1.Object
	for i := range nodes {
		objects = append(objects, largecluster.Node(i))
	}
	for i := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		if _, err := kube.CoreV1().Namespaces().Create(b.Context(), namespace, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range pods {
		pod := largecluster.Pod(i, nodes)
		pod.Namespace, pod.Status.Phase = namespaceName(i%namespaces), corev1.PodPending
		if pod.Spec.NodeName != "" {
			pod.Status.Phase = corev1.PodRunning
		}
		objects = append(objects, pod)
	}
	if err := server.Store(b.Context(), objects); err != nil {
		b.Fatal(err)
	}
}

func namespaceName(i int) string { return fmt.Sprintf("team-%02d", i) }
