//go:build linux

// Package snapshot measures how long a snapshot of a large cluster takes and how much memory it needs, with names and without.
package snapshot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
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

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

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
	took, memory := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for range rounds {
			for name, args := range sides {
				seconds, mebibytes := measure(b, args)
				took[name], memory[name] = append(took[name], seconds), append(memory[name], mebibytes)
			}
		}
	}
	for name := range sides {
		b.Logf("%s: %.1f s, %.0f MiB", name, took[name], memory[name])
		b.ReportMetric(median(took[name]), name+"-s")
		b.ReportMetric(median(memory[name]), name+"-MiB")
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "file-MiB")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// measure runs a command and returns its time and the memory that it had at most.
func measure(b *testing.B, args []string) (seconds, mebibytes float64) {
	b.Helper()
	cmd := exec.CommandContext(run.Context(b), args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Since(start).Seconds(), float64(usage.Maxrss) / 1024 // Linux counts in KiB
}

// fill creates the nodes, and pods of which nine in ten are bound, of the size that pods of Deployments have.
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
			_, err := kube.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{})
			return err
		})
	}
	for i := range pods {
		all.Go(func() error {
			_, err := kube.CoreV1().Pods(namespaceName(i%namespaces)).Create(ctx, pod(i), metav1.CreateOptions{})
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
	if _, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	return err
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func node(i int) *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelInstanceTypeStable: "large",
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for j := range 30 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/team/image-%d:v1", j), fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", j, j)}, SizeBytes: int64(j) << 20,
		})
	}
	return n
}

func pod(i int) *corev1.Pod {
	no := false
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("app-%04d-%05d", i%1000, i),
			Labels:      map[string]string{"app": fmt.Sprintf("app-%04d", i%1000), "pod-template-hash": fmt.Sprintf("%08d", i%1000)},
			Annotations: map[string]string{"description": strings.Repeat("x", 1000)},
		},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: &no, Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprintf("registry.example.com/team/image-%d:v1", i%30), Command: []string{"run", strings.Repeat("y", 200)},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")}},
		}}},
	}
	for j := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: strings.Repeat("z", 50)})
	}
	if i%10 != 0 {
		p.Spec.NodeName = nodeName(i % nodes)
	}
	return p
}
