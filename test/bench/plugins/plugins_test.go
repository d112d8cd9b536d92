//go:build linux

// Package plugins measures the cost of a portable plugin: a scheduler with a portable Filter and
// Score, one with the same logic as a native plugin, and one without, on 1000 nodes.
package plugins

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
		attempt[side] = seen.mean(b, "scheduler_scheduling_attempt_duration_seconds", `profile="`+side+`"`, `result="scheduled"`)
		visits[side] = seen.mean(b, "scheduler_framework_extension_point_duration_seconds", `profile="`+side+`"`, `extension_point="Filter"`, `status="Success"`) +
			seen.mean(b, "scheduler_framework_extension_point_duration_seconds", `profile="`+side+`"`, `extension_point="Score"`, `status="Success"`)
		b.ReportMetric(1e6*attempt[side], side+"-µs/attempt")
		b.ReportMetric(1e6*visits[side], side+"-µs/filter+score")
	}
	b.ReportMetric(attempt["portable"]/attempt["native"], "portable/native")
}

// metrics are lines of Prometheus' text format.
type metrics []string

// readMetrics asks the scheduler through the API server, which asks without a name.
func readMetrics(ctx context.Context, b *testing.B, client kubernetes.Interface) metrics {
	b.Helper()
	controlplane.OpenMetrics(ctx, b, client)
	list, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + scheduler})
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
			var lines metrics
			for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
				lines = append(lines, scanner.Text())
			}
			return lines
		}
		select {
		case <-ctx.Done():
			b.Fatalf("read metrics of %s: %v", pod.Name, err)
		case <-time.After(time.Second): // the API server learns of the role a little later, and the scheduler remembers a refusal for 10 seconds
		}
	}
}

var series = regexp.MustCompile(`^(\w+)\{(.*)\} (\S+)$`)

// mean returns the mean of a histogram, over the series that have all these labels.
func (m metrics) mean(b *testing.B, name string, labels ...string) float64 {
	b.Helper()
	values := map[string]float64{}
lines:
	for _, line := range m {
		found := series.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(found[2], label) {
				continue lines
			}
		}
		value, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			b.Fatal(err)
		}
		values[found[1]] += value
	}
	if values[name+"_count"] == 0 {
		b.Fatalf("the scheduler has no %s %v", name, labels)
	}
	return values[name+"_sum"] / values[name+"_count"]
}
