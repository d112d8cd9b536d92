//go:build linux

// Package snapshot measures how long a snapshot of a large cluster takes and how much memory it
// needs, with names and without.
package snapshot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
	kube := server.Client(b)
	fill(b, kube)
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

// fill creates the nodes, and pods of which nine in ten are bound, of the size that pods of
// Deployments have.
func fill(b *testing.B, kube kubernetes.Interface) {
	b.Helper()
	ctx := b.Context()
	var all errgroup.Group
	all.SetLimit(20)
	for i := range namespaces {
		all.Go(func() error { return makeNamespace(ctx, kube, i) })
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		all.Go(func() error {
			_, err := kube.CoreV1().Nodes().Create(ctx, largecluster.Node(i), metav1.CreateOptions{})
			return err
		})
	}
	for i := range pods {
		all.Go(func() error {
			_, err := kube.CoreV1().Pods(namespaceName(i%namespaces)).Create(ctx, largecluster.Pod(i, nodes),
				metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
}

func namespaceName(i int) string { return fmt.Sprintf("team-%02d", i) }

func makeNamespace(ctx context.Context, kube kubernetes.Interface, i int) error {
	name := namespaceName(i)
	if _, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	return err
}
