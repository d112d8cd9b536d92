//go:build linux

package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
)

// description is a scheduler with every shipped plugin. Weights drown the default plugins.
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
      args: {prometheus: {url: "http://%s", timeout: 2s}, interval: 1s, staleAfter: 10s, window: 10s}
    - builtin: networkaware
      weight: 20
      args: {group: network.example.com, version: v1alpha1, resource: networkmetrics, field: status.latencyMilliseconds}
`

// The workers, as labs call them.
const one, two, three = "worker-001", "worker-002", "worker-003"

// One source of each shipped plugin does on every release what it is there for, all of them in one image.
func TestShippedPlugins(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.release, func(t *testing.T) {
			m := up(t, s)
			m.opensMetrics(t)
			load := prometheus.StartExporter(t, one, two, three)
			load.Load(map[string]float64{one: 0.95, two: 0.1, three: 0.1})
			prom := prometheus.New(t, m.gateway, time.Second, load, map[string]string{one: one, two: two + ":9100", three: three})
			prom.Start(t.Context(), t)

			image := "localhost/" + scheduler + ":" + s.release
			m.build(t, image, "--with", "builtin:blockall", "--with", "builtin:timestamp", "--with", "builtin:loadaware", "--with", "builtin:networkaware")
			file := write(t, "pmk-sched.yaml", fmt.Sprintf(description, prom.Address))
			m.pmkSched(t, "deploy", "-f", file, "--image", image, "--credentials", "node").ok(t)
			m.pmkSched(t, "verify", "-f", file).ok(t)
			m.define(t)

			m.blocksANamespace(t)
			m.stampsWhileOthersUpdate(t)
			m.followsTheLoad(t, load)
			prom.Stop()
			m.goesOnWithoutPrometheus(t)
			m.followsTheNetwork(t)
			m.staysBlocked(t)
			m.isContent(t)
			if s.everyCredentials {
				for _, credentials := range []string{"node-inline", "hostpath", "serviceaccount"} {
					m.deploysWith(t, file, image, credentials)
				}
			}
			m.uninstall(t)
		})
	}
}

func (m *master) blocksANamespace(t *testing.T) {
	t.Helper()
	m.create(t, m.namespace(t, "blocked"), newPod("waits"))
	m.awaitRejected(t, "blocked", "waits", "nothing runs in namespace blocked")
	m.place(t, 3)
	m.staysBlocked(t)
	t.Log("BlockAll blocks pods of one namespace")
}

func (m *master) staysBlocked(t *testing.T) {
	t.Helper()
	for _, pod := range m.list(t, "blocked") {
		if pod.Spec.NodeName != "" {
			t.Errorf("a blocked pod is on %s", pod.Spec.NodeName)
		}
	}
}

// followsTheLoad expects the first worker to be busy, and then makes it the only idle one.
func (m *master) followsTheLoad(t *testing.T, load *prometheus.Exporter) {
	t.Helper()
	m.placesOn(t, "pods go to the two idle nodes", two, three)
	load.Load(map[string]float64{one: 0.1, two: 0.9, three: 0.9})
	m.placesOn(t, "pods follow the load", one)
	if up := m.metric(t, "pmk_sched_loadaware_up", ""); up != 2 { // CPU and memory
		t.Errorf("pmk_sched_loadaware_up is %v in all", up)
	}
	t.Log("LoadAware follows Prometheus")
}

func (m *master) goesOnWithoutPrometheus(t *testing.T) {
	t.Helper()
	m.place(t, 12) // at once, while the last data still count
	eventually(t, "the metrics say that there is no Prometheus", func() (bool, string) {
		up := m.metric(t, "pmk_sched_loadaware_up", "")
		return up == 0, fmt.Sprint(up)
	})
	m.placesOn(t, "pods are spread as without the plugin", one, two, three)
	t.Log("pods are scheduled without Prometheus")
}

var (
	definitions    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	networkmetrics = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1", Resource: "networkmetrics"}
)

// define adds the resource that NetworkAware reads, after the scheduler has started without it.
func (m *master) define(t *testing.T) {
	t.Helper()
	_, err := m.dynamic.Resource(definitions).Create(patience(t), example(t, "crd.yaml"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func example(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../scheduler/plugins/networkaware/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// followsTheNetwork expects LoadAware to have no say.
func (m *master) followsTheNetwork(t *testing.T) {
	t.Helper()
	for name, latency := range map[string]float64{one: 30, two: 1.5, three: 30} {
		object := example(t, "sample.yaml")
		object.SetName(name)
		err := unstructured.SetNestedField(object.Object, latency, "status", "latencyMilliseconds")
		if err == nil {
			_, err = m.dynamic.Resource(networkmetrics).Create(patience(t), object, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.placesOn(t, "pods go to the nearest node", two)
	for name, patch := range map[string]string{two: `{"status": {"latencyMilliseconds": 80}}`, three: `{"status": {"latencyMilliseconds": 2}}`} {
		if _, err := m.dynamic.Resource(networkmetrics).Patch(patience(t), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m.placesOn(t, "pods follow the resource", three)
	t.Log("NetworkAware follows the resource")
}

// deploysWith has a scheduler that proves who it is in that way stamp pods, place them by the custom resource and block others.
func (m *master) deploysWith(t *testing.T, file, image, credentials string) {
	t.Helper()
	m.pmkSched(t, "deploy", "-f", file, "--image", image, "--credentials", credentials).ok(t)
	m.placesOn(t, "pods are placed by the resource with credentials "+credentials, three)
	namespace := m.namespace(t, "by-"+credentials)
	m.create(t, namespace, newPod("stamped"))
	m.isStamped(t, m.awaitBound(t, namespace, 1), time.Now().Add(-time.Hour))
	m.staysBlocked(t)
	m.isContent(t)
	t.Logf("all do so with credentials %s", credentials)
}
