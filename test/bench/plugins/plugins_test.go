// Package plugins measures what a portable plugin costs: a scheduler with a portable Filter and Score, one with the same logic as a
// native plugin, and one without, on 1000 nodes.
package plugins

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	branch    = "v1.24.3"
	lab       = "bench-plugins"
	nodes     = 1000
	pods      = 3000 // per side
	scheduler = "none"
	namespace = "bench"
)

// The sides are profiles of one scheduler, and their pods come in turn: what the machine does meanwhile befalls all alike.
var sides = []string{"none", "native", "portable"}

func BenchmarkPlugins(b *testing.B) {
	program := run.Program(b)
	b.Cleanup(func() { do(b, exec.Command(program, "lab", "down", "--name", lab)) })
	do(b, exec.Command(program, "lab", "up", "--name", lab, "--branch", branch, "--layout", "kubeadm", "--nodes", fmt.Sprint(nodes)))
	onMaster := func(args ...string) {
		do(b, exec.Command(program, append([]string{"lab", "exec", "--name", lab, "--", program}, args...)...))
	}
	file, err := filepath.Abs("testdata/pmk-sched.yaml")
	if err != nil {
		b.Fatal(err)
	}
	onMaster("build", "-f", file, "--busybox", "/bin/busybox", "--load", "containerd")
	onMaster("deploy", "-f", file)
	client := connect(b, program)
	for b.Loop() {
		measure(b, client)
	}
}

// measure makes all pods pending while the scheduler is away, then starts it and reads its own metrics when all are bound.
func measure(b *testing.B, client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	scale(ctx, b, client, 0)
	createPods(ctx, b, client)
	scale(ctx, b, client, 1)
	for {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", ResourceVersion: "0"})
		if err != nil {
			b.Fatal(err)
		}
		if len(list.Items) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%d pods are still pending", len(list.Items))
		case <-time.After(2 * time.Second):
		}
	}
	seen := readMetrics(ctx, b, client)
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

func createPods(ctx context.Context, b *testing.B, client kubernetes.Interface) {
	b.Helper()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	no := false
	var group errgroup.Group
	group.SetLimit(20)
	for i := range len(sides) * pods {
		group.Go(func() error {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i)},
				Spec: corev1.PodSpec{
					SchedulerName:                sides[i%len(sides)],
					AutomountServiceAccountToken: &no,
					Containers:                   []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
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

// scale sets the scheduler's replicas and waits until none is left, if that is what was asked.
func scale(ctx context.Context, b *testing.B, client kubernetes.Interface, replicas int32) {
	b.Helper()
	deployments := client.AppsV1().Deployments("kube-system")
	current, err := deployments.GetScale(ctx, scheduler, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	current.Spec.Replicas = replicas
	if _, err := deployments.UpdateScale(ctx, scheduler, current, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	for replicas == 0 {
		list, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + scheduler})
		if err != nil {
			b.Fatal(err)
		}
		if len(list.Items) == 0 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func connect(b *testing.B, program string) kubernetes.Interface {
	b.Helper()
	kubeconfig, err := exec.Command(program, "lab", "kubeconfig", "--name", lab).Output()
	if err != nil {
		b.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS, config.Burst = 5000, 5000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func do(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}
