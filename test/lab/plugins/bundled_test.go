//go:build linux && (cases || faults || labs)

package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// description is a scheduler with every bundled plugin. Weights drown the default plugins.
const description = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: ` + scheduler + `, namespace: kube-system}
spec:
  source:
    plugins:
    - builtin: blockall
      args: {namespaces: [blocked], message: nothing runs in namespace blocked}
    - builtin: timestamp
    - builtin: loadaware
      weight: 20
      args:
        prometheus: {url: "http://%s", timeout: 2s}
        interval: 1s
        staleAfter: 10s
        window: 10s
        metrics: [{name: cpu}, {name: memory, maxPercent: 97}]
        expectedLoad: {memory: 1Mi}
    - builtin: networkaware
      weight: 20
      args: {group: network.example.com, version: v1alpha1, resource: networkmetrics, field: status.latencyMilliseconds}
`

// The fake workers of a lab.
const one, two, three = "worker-001", "worker-002", "worker-003"

// Each bundled plugin works on every release, all of them in one image.
func TestBundledPlugins(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.release, func(t *testing.T) {
			n := connect(t, labOf(t, s))
			controlplane.OpenMetrics(run.Context(t), t, n.Kube)
			load := prometheus.StartExporter(t, one, two, three)
			load.Load(map[string]float64{one: 0.95, two: 0.1, three: 0.1})
			prom := prometheus.New(t, n.Gateway(t), time.Second, load,
				map[string]string{one: one, two: two + ":9100", three: three})
			prom.Start(t.Context(), t)

			image := n.Image(t, "blockall", "timestamp", "loadaware", "networkaware")
			file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(description, prom.Address))
			n.UninstallLater(t, scheduler)
			n.deploy(t, file, image, "node")
			n.PMKSched(t, "verify", "-f", file).OK(t)
			n.define(t)

			n.blocksANamespace(t)
			n.stampsWhileOthersUpdate(t)
			n.followsTheLoad(t, load)
			n.retriesWhenTheLoadFalls(t, load)
			prom.Stop()
			n.schedulesWithoutPrometheus(t)
			n.followsTheNetwork(t)
			n.staysBlocked(t)
			n.CleanLog(t, scheduler, noResource...)
			for _, credentials := range s.credentials {
				n.schedulesWith(t, file, image, credentials)
			}
		})
	}
}

// noResource are the log messages until the resource that NetworkAware reads is defined.
var noResource = []string{"the server could not find the requested resource",
	"NetworkAware: the resource does not exist"}

// deploy deploys the scheduler of a file with a kind of credentials.
func (n *node) deploy(t *testing.T, file, image, credentials string) {
	t.Helper()
	args := append([]string{"deploy", "-f", file, "--image", image, "--credentials", credentials, "--port", n.Port(t)},
		labs.Stable("1s")...)
	n.PMKSched(t, args...).OK(t)
}

func (n *node) blocksANamespace(t *testing.T) {
	t.Helper()
	n.create(t, n.namespace(t, "blocked"), newPod("waits"))
	n.awaitRejected(t, "blocked", "waits", "nothing runs in namespace blocked")
	n.place(t, 3)
	n.staysBlocked(t)
	t.Log("BlockAll blocks pods of one namespace")
}

func (n *node) staysBlocked(t *testing.T) {
	t.Helper()
	for _, pod := range n.list(t, "blocked") {
		if pod.Spec.NodeName != "" {
			t.Errorf("a blocked pod is on %s", pod.Spec.NodeName)
		}
	}
}

// followsTheLoad expects the first worker to be busy, and then makes it the only idle one.
func (n *node) followsTheLoad(t *testing.T, load *prometheus.Exporter) {
	t.Helper()
	n.placesOn(t, "pods go to the two idle nodes", two, three)
	load.Load(map[string]float64{one: 0.1, two: 0.9, three: 0.9})
	n.placesOn(t, "pods follow the load", one)
	run.Eventually(t, "LoadAware reads both metrics", func(context.Context) (bool, string) {
		up := n.loadSources(t)
		return up == 2, fmt.Sprint(up)
	})
	t.Log("LoadAware follows Prometheus")
}

// retriesWhenTheLoadFalls expects pods to be held while all workers are loaded, and bound when the
// load of one falls. Without a retry they would wait for another event, or for the flush of pods
// that have waited for minutes.
func (n *node) retriesWhenTheLoadFalls(t *testing.T, load *prometheus.Exporter) {
	t.Helper()
	namespace := n.namespace(t, "held")
	load.Load(map[string]float64{one: 0.99, two: 0.99, three: 0.99})
	read := func(name string) *corev1.Pod {
		pod, err := n.Kube.CoreV1().Pods(namespace).Get(run.Context(t), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	held := newPod("")
	run.Eventually(t, "pods are held", func(context.Context) (bool, string) { // once the load is measured
		held = newPod(held.Name + "x")
		n.create(t, namespace, held)
		var seen *corev1.Pod
		run.Eventually(t, "the pod is bound or rejected", func(context.Context) (bool, string) {
			seen = read(held.Name)
			return seen.Spec.NodeName != "" || whyPending(*seen) != "", ""
		})
		return seen.Spec.NodeName == "" && strings.Contains(whyPending(*seen), "memory load is 97% or more"),
			seen.Spec.NodeName + whyPending(*seen)
	})
	before := n.metrics(t).By(t, controlplane.MovedPods, "event")
	load.Load(map[string]float64{one: 0.1, two: 0.9, three: 0.9})
	fell := time.Now()
	run.Eventually(t, "the held pod is bound", func(context.Context) (bool, string) {
		seen := read(held.Name)
		return seen.Spec.NodeName != "", fmt.Sprint(whyPending(*seen), seen.Annotations)
	})
	moves := controlplane.Increase(before, n.metrics(t).By(t, controlplane.MovedPods, "event"))
	if len(before) == 0 || moves[controlplane.Flushed] > 0 {
		t.Errorf("the held pod was tried again only because of the time: %v after %v", moves, before)
	}
	n.remove(t, namespace)
	t.Logf("LoadAware: a pod that was held is bound %s after the load fell", time.Since(fell))
}

func (n *node) schedulesWithoutPrometheus(t *testing.T) {
	t.Helper()
	n.place(t, 12) // at once, while the last data still count
	run.Eventually(t, "the metrics report that Prometheus is gone", func(context.Context) (bool, string) {
		up := n.loadSources(t)
		return up == 0, fmt.Sprint(up)
	})
	n.placesOn(t, "pods are spread as without the plugin", one, two, three)
	t.Log("pods are scheduled without Prometheus")
}

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	networkmetrics = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1",
		Resource: "networkmetrics"}
)

// define adds the resource that NetworkAware reads, after the scheduler has started without it.
func (n *node) define(t *testing.T) {
	t.Helper()
	_, err := n.dynamic.Resource(definitions).Create(run.Context(t), example(t, "crd.yaml"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func example(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run.Root(), "scheduler/plugins/networkaware/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// followsTheNetwork checks that pods follow NetworkAware. It requires that LoadAware prefers no
// node.
func (n *node) followsTheNetwork(t *testing.T) {
	t.Helper()
	for name, latency := range map[string]float64{one: 30, two: 1.5, three: 30} {
		object := example(t, "sample.yaml")
		object.SetName(name)
		err := unstructured.SetNestedField(object.Object, latency, "status", "latencyMilliseconds")
		if err == nil {
			_, err = n.dynamic.Resource(networkmetrics).Create(run.Context(t), object, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n.placesOn(t, "pods go to the nearest node", two)
	for name, patch := range map[string]string{two: `{"status": {"latencyMilliseconds": 80}}`,
		three: `{"status": {"latencyMilliseconds": 2}}`} {
		if _, err := n.dynamic.Resource(networkmetrics).Patch(run.Context(t), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	n.placesOn(t, "pods follow the resource", three)
	t.Log("NetworkAware follows the resource")
}

// schedulesWith fails the test unless a scheduler with another kind of credentials stamps pods,
// places them by the custom resource and blocks others.
func (n *node) schedulesWith(t *testing.T, file, image, credentials string) {
	t.Helper()
	n.deploy(t, file, image, credentials)
	n.placesOn(t, "pods are placed by the resource with credentials "+credentials, three)
	namespace := n.namespace(t, "by-"+credentials)
	n.create(t, namespace, newPod("stamped"))
	n.isStamped(t, n.awaitBound(t, namespace, 1), time.Now().Add(-time.Hour))
	n.staysBlocked(t)
	n.CleanLog(t, scheduler, noResource...)
	t.Logf("all do so with credentials %s", credentials)
}
