//go:build linux

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	recordedNodes = 5_000
	recordedPods  = 20_000
	// heartbeat is how often a kubelet writes the status of a node that has not changed.
	heartbeat = 5 * time.Minute
	// observed is how long changes are recorded. A recording of a moment is subtracted.
	observed, moment = 60 * time.Second, time.Second
)

// BenchmarkRecord records a cluster of 5,000 nodes whose kubelets report, and in which a pod
// arrives and is bound each second.
func BenchmarkRecord(b *testing.B) {
	binaries, err := apiserver.FindBinaries(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server := apiserver.StartFor(b, binaries)
	fill(b, server)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, ""); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- live(ctx, server.Client(b)) }()
	record := func(duration time.Duration) run.Usage {
		result, used := run.Measure(b, run.Program(b), "record", "--kubeconfig", kubeconfig, "--for", duration.String(),
			"--archive", filepath.Join(b.TempDir(), "recording.tar.gz"))
		b.Logf("%s: %.2f s of CPU, %.0f MiB: %s", duration, used.CPU, used.MiB, result.OK(b).Stdout)
		return used
	}
	var core, memory, ends samples.Set
	for b.Loop() {
		short, long := record(moment), record(observed+moment)
		core = append(core, 100*(long.CPU-short.CPU)/observed.Seconds())
		memory, ends = append(memory, long.MiB), append(ends, short.CPU)
	}
	b.ReportMetric(core.Mean(), "%-of-a-core")
	b.ReportMetric(slices.Max(memory), "MiB")
	b.ReportMetric(ends.Mean(), "start-and-end-CPU-s")
	claim := samples.Claim("docs/replay.md", "17 heartbeats and a new pod each second | 0.75 % of a core, 62 MiB")
	claim.AtMost(b, "MiB", slices.Max(memory), 120)
	claim.AtMost(b, "% of a core", core.Mean(), 5)
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

func fill(b *testing.B, server *apiserver.Server) {
	b.Helper()
	kube := server.Client(b)
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if _, err := kube.CoreV1().Namespaces().Create(b.Context(), team, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := kube.CoreV1().ServiceAccounts("team").Create(b.Context(), account, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	var objects []metav1.Object
	for i := range recordedNodes {
		objects = append(objects, largecluster.Node(i))
	}
	for i := range recordedPods {
		pod := largecluster.Pod(i, recordedNodes)
		pod.Namespace, pod.Status.Phase = "team", corev1.PodRunning
		objects = append(objects, pod)
	}
	if err := server.Store(b.Context(), objects); err != nil {
		b.Fatal(err)
	}
}

// live changes the cluster until ctx is done.
func live(ctx context.Context, kube kubernetes.Interface) error {
	pause := heartbeat / recordedNodes
	began := time.Now()
	for i := 0; ; i++ {
		if clock.Sleep(ctx, time.Until(began.Add(time.Duration(i)*pause))) != nil {
			return nil //nolint:nilerr // the end of the benchmark
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}}})
		if err == nil {
			_, err = kube.CoreV1().Nodes().Patch(ctx, largecluster.NodeName(i%recordedNodes), types.StrategicMergePatchType,
				patch, metav1.PatchOptions{}, "status")
		}
		if err == nil && i%int(time.Second/pause) == 0 {
			err = arrive(ctx, kube, i)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// arrive creates a pod and binds it.
func arrive(ctx context.Context, kube kubernetes.Interface, i int) error {
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("new-%d", i)}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}}}}
	pods := kube.CoreV1().Pods("team")
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: largecluster.NodeName(i % recordedNodes)}}, metav1.CreateOptions{})
}
