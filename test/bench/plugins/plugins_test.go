//go:build linux

// Package plugins measures the cost of a portable plugin: a scheduler with a portable Filter and
// Score, one with the same logic as a native plugin, and one without, on 1000 nodes.
package plugins

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

const (
	nodes     = 1000
	pods      = 3000 // per side
	scheduler = "none"
)

// The sides are profiles of one scheduler, and their pods come in turn: other load on the machine
// affects all of them.
var sides = []string{"none", "native", "portable"}

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

func BenchmarkPlugins(b *testing.B) {
	n := labs.Start(b, labs.Options{Release: labs.Release, Layout: lab.LayoutKubeadm, Workers: nodes})
	file, err := filepath.Abs("testdata/pmk-sched.yaml")
	if err != nil {
		b.Fatal(err)
	}
	n.PMKSched(b, "build", "-f", file, "--busybox", "/bin/busybox", "--load", "containerd").OK(b)
	n.PMKSched(b, "deploy", "-f", file).OK(b)
	for b.Loop() {
		measure(b, n)
	}
}

// measure makes all pods pending while the scheduler has no replica, then starts it and reads its
// own metrics when all are bound.
func measure(b *testing.B, n *labs.Node) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	n.Scale(b, scheduler, 0)
	namespace := n.CreatePods(ctx, b, len(sides)*pods, sides...)
	events := controlplane.WatchBound(ctx, b, n.Kube, namespace)
	n.Scale(b, scheduler, 1)
	if _, bound := controlplane.BindingRate(events, len(sides)*pods); bound < len(sides)*pods {
		b.Fatalf("only %d of %d pods are bound", bound, len(sides)*pods)
	}
	seen := readMetrics(ctx, b, n.Kube)
	attempt, visits := map[string]float64{}, map[string]float64{}
	for _, side := range sides {
		attempt[side] = mean(b, seen, "scheduler_scheduling_attempt_duration_seconds", []string{"profile", "result"}, side,
			"scheduled")
		point := []string{"profile", "extension_point", "status"}
		visits[side] = mean(b, seen, "scheduler_framework_extension_point_duration_seconds", point, side, "Filter",
			"Success") +
			mean(b, seen, "scheduler_framework_extension_point_duration_seconds", point, side, "Score", "Success")
		b.ReportMetric(1e6*attempt[side], side+"-µs/attempt")
		b.ReportMetric(1e6*visits[side], side+"-µs/filter+score")
	}
	b.ReportMetric(attempt["portable"]/attempt["native"], "portable/native")
}

// readMetrics asks the scheduler through the API server, which asks without a name.
func readMetrics(ctx context.Context, b *testing.B, client kubernetes.Interface) metrics.Set {
	b.Helper()
	controlplane.OpenMetrics(ctx, b, client)
	list, err := client.CoreV1().Pods("kube-system").List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + scheduler})
	if err != nil || len(list.Items) != 1 {
		b.Fatalf("the scheduler has %d pods: %v", len(list.Items), err)
	}
	pod := list.Items[0]
	port := ""
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if value, ok := strings.CutPrefix(arg, "--secure-port="); ok {
				port = value
			}
		}
	}
	for {
		text, err := client.CoreV1().RESTClient().Get().Namespace("kube-system").Resource("pods").
			Name("https:" + pod.Name + ":" + port).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
		if err == nil {
			return metrics.Parse(string(text))
		}
		select {
		case <-ctx.Done():
			b.Fatalf("read metrics of %s: %v", pod.Name, err)
		case <-time.After(time.Second):
			// the API server learns of the role a little later, and the scheduler remembers a refusal for 10
			// seconds
		}
	}
}

// mean returns the mean of a histogram over the series of a profile that have the labels.
func mean(b *testing.B, m metrics.Set, name string, labels []string, values ...string) float64 {
	b.Helper()
	h := m.Histograms(name, labels...)[strings.Join(values, "/")]
	if h == nil || h.Count == 0 {
		b.Fatalf("the scheduler has no %s %v", name, values)
	}
	return h.Mean()
}
