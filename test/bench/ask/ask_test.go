//go:build linux

// Package ask measures how long the server of `pmk-sched ask` takes to answer in large clusters,
// what it uses while no one asks, and how long `simulate add` takes for the same question.
package ask

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	// single and jobs are the numbers of questions about one pod and about 100.
	single, jobs = 200, 10
	// idle is the time for which the server is watched while no one asks.
	idle = 20 * time.Second
	// changes is the number of changes in the cluster in a second.
	changes = 50
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

func BenchmarkAsk(b *testing.B) {
	const page = "docs/ask.md"
	for _, size := range []struct {
		nodes, pods                 int
		one, oneLate, hundred, most float64
		claim                       samples.Claimed
	}{
		{1_000, 5_000, 0.15, 0.5, 2, 400, samples.Claim(page, "| 1,000 nodes, 5,000 pods | 15 to 22 ms | 27 to 51 ms | 0.6 to 1.3 s |")},
		{5_000, 20_000, 0.4, 2, 10, 2000, samples.Claim(page, "| 5,000 nodes, 20,000 pods | 13 to 22 ms | 32 to 65 ms | 0.8 to 1.2 s |")},
	} {
		b.Run(fmt.Sprintf("%d-nodes", size.nodes), func(b *testing.B) {
			claim := size.claim
			p := cluster(b, size.nodes, size.pods)
			s := serve(b, p)
			for b.Loop() {
				cpu, mebibytes := s.use(b)
				b.ReportMetric(cpu, "idle-cores")
				b.ReportMetric(mebibytes, "idle-MiB")
				quiet := s.measure(b, "quiet")
				claim.AtMost(b, "p50 of one pod", quantile(quiet.one, 0.5), size.one)
				claim.AtMost(b, "p99 of one pod", quantile(quiet.one, 0.99), size.oneLate)
				claim.AtMost(b, "p50 of 100 pods", quantile(quiet.hundred, 0.5), size.hundred)
				claim.AtMost(b, "idle MiB", mebibytes, size.most)
				claim.AtMost(b, "idle cores", cpu, 0.05)
				stop := change(b, p, size.pods)
				busy := s.measure(b, "changing")
				stop()
				claim.AtMost(b, "p50 of one pod in a changing cluster", quantile(busy.one, 0.5), size.one)
				claim.AtMost(b, "p99 of one pod in a changing cluster", quantile(busy.one, 0.99), size.oneLate)
				claim.AtMost(b, "p50 of 100 pods in a changing cluster", quantile(busy.hundred, 0.5), size.hundred)
				begin := time.Now()
				run.PMKSched(b, "--kubeconfig", p.Kubeconfig, "simulate", "add", "--limit", "0", "--branch",
					p.Release.String(), "-m", run.WriteFile(b, "pod.yaml", manifest(1))).OK(b)
				b.ReportMetric(time.Since(begin).Seconds(), "simulate-add-s")
			}
		})
	}
}

// cluster starts an API server with nodes and pods on them.
func cluster(b *testing.B, nodes, pods int) *controlplane.Plane {
	b.Helper()
	binaries, err := apiserver.FindBinaries(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server := apiserver.StartFor(b, binaries)
	p := controlplane.On(b, server)
	var objects []metav1.Object
	for i := range nodes {
		objects = append(objects, largecluster.Node(i))
	}
	for i := range pods {
		pod := largecluster.Pod(i, nodes)
		pod.Namespace, pod.Spec.NodeName = metav1.NamespaceDefault, largecluster.NodeName((i+i/nodes)%nodes)
		pod.Status.Phase = corev1.PodRunning
		objects = append(objects, pod)
	}
	if err := server.Store(b.Context(), objects); err != nil {
		b.Fatal(err)
	}
	return p
}

// server is a running `pmk-sched ask serve`.
type server struct {
	client ask.Client
	pid    int
}

func serve(b *testing.B, p *controlplane.Plane) *server {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "ask.sock")
	var stderr run.Output
	cmd := exec.CommandContext(run.Context(b), run.Program(b), "--kubeconfig", p.Kubeconfig, "ask", "serve", "--branch",
		p.Release.String(), "--listen", "unix:"+socket)
	cmd.Stderr, cmd.SysProcAttr = &stderr, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // it may have ended
		_ = cmd.Wait()                                     // interrupted
	})
	begin := time.Now()
	run.Eventually(b, "the server listens", func(ctx context.Context) (bool, string) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return false, stderr.String()
		}
		return c.Close() == nil, ""
	})
	b.Logf("the server answers after %s", time.Since(begin).Round(time.Millisecond))
	return &server{client: ask.Client{Address: "unix:" + socket}, pid: cmd.Process.Pid}
}

// manifest returns a job of pods.
func manifest(pods int) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default}
spec:
  parallelism: %d
  completions: %[1]d
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}
`, pods)
}

// times are the seconds of the answers.
type times struct{ one, hundred samples.Set }

func (s *server) measure(b *testing.B, name string) (t times) {
	b.Helper()
	for range single {
		t.one = append(t.one, s.ask(b, 1))
	}
	for range jobs {
		t.hundred = append(t.hundred, s.ask(b, 100))
	}
	for _, q := range []float64{0.5, 0.99} {
		b.ReportMetric(1000*quantile(t.one, q), fmt.Sprintf("%s-p%.0f-ms", name, 100*q))
	}
	b.ReportMetric(1000*quantile(t.hundred, 0.5), name+"-100-pods-ms")
	return t
}

// ask asks about a job, and returns the time until the answer.
func (s *server) ask(b *testing.B, pods int) float64 {
	b.Helper()
	template := map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{
		"name": "main", "image": "x", "resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}},
	}}}}
	q := ask.Question{Manifests: []map[string]any{{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{
		"name": "train", "namespace": "default"}, "spec": map[string]any{"parallelism": pods, "completions": pods,
		"template": template}}}}
	begin := time.Now()
	a, err := s.client.Ask(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin).Seconds()
	if a.Fits != ask.Yes || len(a.Pods) != pods {
		b.Fatalf("%+v", a)
	}
	return took
}

func quantile(s samples.Set, q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// use returns the cores that the server and its scheduler use while no one asks, and their memory.
func (s *server) use(b *testing.B) (cores, mebibytes float64) {
	b.Helper()
	before, _ := s.usage(b)
	if err := clock.Sleep(b.Context(), idle); err != nil {
		b.Fatal(err)
	}
	after, mebibytes := s.usage(b)
	return (after - before) / idle.Seconds(), mebibytes
}

// usage returns the seconds of CPU and the memory of the server and its scheduler (proc(5), stat).
func (s *server) usage(b *testing.B) (seconds, mebibytes float64) {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third on
		if group, _ := strconv.Atoi(fields[2]); group != s.pid {
			continue
		}
		for _, ticks := range fields[11:13] {
			n, _ := strconv.ParseFloat(ticks, 64)
			seconds += n / 100
		}
		pages, _ := strconv.Atoi(fields[21])
		mebibytes += float64(pages*os.Getpagesize()) / (1 << 20)
	}
	return seconds, mebibytes
}

// change changes pods until it is stopped.
func change(b *testing.B, p *controlplane.Plane, pods int) (stop func()) {
	b.Helper()
	const clients = 5
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	var changed atomic.Int64
	for client := range clients {
		all.Go(func() {
			tick := time.NewTicker(clients * time.Second / changes)
			defer tick.Stop()
			for n := client; ; n += clients {
				name := largecluster.Pod(n%pods, 1).Name
				patch := fmt.Sprintf(`{"metadata":{"labels":{"changed":"%d"}}}`, n)
				_, err := p.Kube.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, name, types.MergePatchType, []byte(patch),
					metav1.PatchOptions{})
				if err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
				changed.Add(1)
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	begin := time.Now()
	return func() {
		cancel()
		all.Wait()
		b.ReportMetric(float64(changed.Load())/time.Since(begin).Seconds(), "changes/s")
	}
}
