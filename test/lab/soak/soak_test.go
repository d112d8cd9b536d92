//go:build linux && soak

package soak

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	scheduler, extender = "soaked", "soaked-extender"
	namespace           = "soak"
	workers             = 2000
	// measured is how many of the workers have a load.
	measured = 200
	// rate is how many pods are created, and deleted, each second; each pod exists for age.
	rate = 50
	age  = 20 * time.Second
	port = 10299
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// file deploys the scheduler with loadaware compiled in, and an extender that it asks for every
// pod. It looks at a twentieth of the nodes for each pod: the machine has to keep up with the rate.
const file = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: ` + scheduler + `}
spec:
  ports: {secure: %[1]d}
  configuration:
    inline: {apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: KubeSchedulerConfiguration, percentageOfNodesToScore: 5}
  source:
    plugins:
    - builtin: loadaware
      args: {prometheus: {url: "http://%[2]s"}, interval: 5s, metrics: [{name: cpu, maxPercent: 95}]}
  extenders:
  - name: ` + extender + `
    image: localhost/pmk-extender:soak
    ignorable: false
    httpTimeout: 5s
    policies: [{name: LoadAware, args: {prometheus: {url: "http://%[2]s"}, interval: 5s, metrics: [{name: cpu, maxPercent: 95}]}}]
`

// For SOAK (60 minutes by default) pods come and go at a constant rate. None is lost, and neither
// the scheduler nor the extender grows.
func TestSchedulerAndExtenderDoNotGrow(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		duration = time.Hour
	}
	n := labs.Start(t, labs.Options{Release: labs.Release, Layout: "kubeadm", Workers: workers})
	instances := map[string]string{}
	for i := range measured {
		name := fmt.Sprintf("worker-%03d", i+1)
		instances[name] = name
	}
	load := prometheus.StartExporter(t, slices.Collect(maps.Keys(instances))...)
	server := prometheus.New(t, n.Gateway(t), 10*time.Second, load, instances)
	server.Start(t.Context(), t)
	n.Load(t, "localhost/pmk-extender:soak", "extender")
	image := n.Image(t, "loadaware")
	description := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(file, port, server.Address))
	n.UninstallLater(t, scheduler)
	n.PMKSched(t, "deploy", "-f", description, "--image", image).OK(t)
	n.Kubectl(t, "create", "namespace", namespace)
	controlplane.OpenMetrics(t.Context(), t, n.Kube)

	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var samples []map[string]float64
	group, ctx := errgroup.WithContext(ctx)
	batches := 0
	group.Go(func() (err error) {
		batches, err = churn(ctx, n)
		return err
	})
	group.Go(func() error {
		for every := time.NewTicker(max(duration/40, 10*time.Second)); ; {
			select {
			case <-ctx.Done():
				return nil
			case <-every.C:
			}
			sample, err := measure(ctx, t, n)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			t.Log(sample)
			samples = append(samples, sample)
		}
	})
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if least := int(0.95 * duration.Seconds()); batches < least {
		t.Errorf("%d batches of %d pods in %s, expected %d or more: the rate was not reached", batches, rate, duration, least)
	}
	doNotGrow(t, samples)
}

// churn creates a batch of pods each second, and deletes them when they are old enough, until ctx
// ends. A pod that has no node by then was lost. It returns the number of batches.
func churn(ctx context.Context, n *labs.Node) (batch int, err error) {
	client := n.Kube.CoreV1().Pods(namespace)
	batches := [][]string{}
	for every := time.NewTicker(time.Second); ; batch++ {
		select {
		case <-ctx.Done():
			return batch, nil
		case <-every.C:
		}
		var names []string
		work, each := errgroup.WithContext(ctx)
		for i := range rate {
			pod := newPod(fmt.Sprintf("pod-%d-%d", batch, i))
			names = append(names, pod.Name)
			work.Go(func() error {
				_, err := client.Create(each, pod, metav1.CreateOptions{})
				return err
			})
		}
		batches = append(batches, names)
		if len(batches) > int(age/time.Second) {
			for _, name := range batches[0] {
				work.Go(func() error { return remove(each, n, name) })
			}
			batches = batches[1:]
		}
		if err := work.Wait(); err != nil && ctx.Err() == nil {
			return batch, err
		}
	}
}

// remove deletes a pod, which must have a node.
func remove(ctx context.Context, n *labs.Node, name string) error {
	now := int64(0)
	pod, err := n.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("pod %s has no node after %s: %v", name, age, pod.Status.Conditions)
	}
	return n.Kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			NodeSelector:  map[string]string{"type": "kwok"},
			Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
			}}},
		},
	}
}

// kept are the metrics of a process that must not grow, and the growth that is allowed in addition
// to a tenth.
var kept = map[string]float64{"process_resident_memory_bytes": 32 << 20, "go_goroutines": 50, "process_open_fds": 20}

// measure reads the metrics of the scheduler and of the extender's pods.
func measure(ctx context.Context, t *testing.T, n *labs.Node) (map[string]float64, error) {
	sample := map[string]float64{}
	for name, on := range map[string]string{scheduler: strconv.Itoa(port), extender: "8443"} {
		pods, err := n.Kube.CoreV1().Pods("kube-system").List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name})
		if err != nil || len(pods.Items) == 0 {
			return nil, fmt.Errorf("list the pods of %s: %d, %w", name, len(pods.Items), err)
		}
		for i, pod := range pods.Items {
			text, err := n.Kube.CoreV1().Pods("kube-system").ProxyGet("https", pod.Name, on, "/metrics", nil).DoRaw(ctx)
			if err != nil {
				return nil, fmt.Errorf("read the metrics of pod %s: %w", pod.Name, err)
			}
			if err := add(sample, name+strconv.Itoa(i), string(text)); err != nil {
				return nil, err
			}
			if pod.Status.ContainerStatuses[0].RestartCount > 0 {
				return nil, fmt.Errorf("pod %s was restarted", pod.Name)
			}
		}
	}
	return sample, nil
}

// add adds the metrics that are kept, which the process must have.
func add(sample map[string]float64, process, metrics string) error {
	for line := range strings.Lines(metrics) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if _, counts := kept[name]; found && counts {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				sample[process+" "+name] = v
			}
		}
	}
	for name := range kept {
		if sample[process+" "+name] == 0 {
			return fmt.Errorf("the metrics of %s have no %s", process, name)
		}
	}
	return nil
}

// doNotGrow compares the medians of the second and the last quarter of the samples; the first is
// for caches to fill.
func doNotGrow(t *testing.T, samples []map[string]float64) {
	t.Helper()
	quarter := len(samples) / 4
	if quarter < 2 {
		t.Fatalf("%d samples are too few", len(samples))
	}
	for key := range samples[0] {
		early, late := median(samples[quarter:2*quarter], key), median(samples[len(samples)-quarter:], key)
		_, metric, _ := strings.Cut(key, " ")
		t.Logf("%s: %.0f, then %.0f", key, early, late)
		if late > 1.1*early+kept[metric] {
			t.Errorf("%s grew from %.0f to %.0f", key, early, late)
		}
	}
}

func median(samples []map[string]float64, key string) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s[key])
	}
	slices.Sort(values)
	return values[len(values)/2]
}
