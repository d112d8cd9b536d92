//go:build linux

package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	networkmetrics = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1",
		Resource: "networkmetrics"}
	arguments = scheduler.NewArguments([]byte(networkArguments))
)

const networkArguments = `{"group": "network.example.com", "version": "v1alpha1", "resource": "networkmetrics", "field": "status.latencyMilliseconds"}`

func TestNetworkAwareFollowsTheResource(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := networkaware.Rules(arguments)
	if err != nil {
		t.Fatal(err)
	}
	config := user(ctx, t, "networker", rules)
	if err := server.AwaitAccess(ctx, "networker", authorizationv1.ResourceAttributes{Verb: "list",
		Group: networkmetrics.Group, Resource: networkmetrics.Resource}); err != nil {
		t.Fatal(err)
	}
	h := newHandle(t, config)
	plugin, err := networkaware.New(ctx, arguments, h)
	if err != nil {
		t.Fatal(err)
	}

	expectScores(ctx, t, plugin, "without the resource every node is the same", nil)
	run.Eventually(t, "the log reports it", func(context.Context) (bool, string) {
		return h.log.count("info: NetworkAware: the resource does not exist") == 1 &&
			h.metric(t, "pmk_sched_networkaware_failures_total", "missing") > 0, fmt.Sprint(h.log.text)
	})
	create(ctx, t, client.Resource(definitions), read(t, "networkaware", "crd.yaml"))
	sample := read(t, "networkaware", "sample.yaml")
	for name, latency := range map[string]interface{}{"node-1": 1.5, "node-2": 2.5, "node-3": int64(11)} {
		sample.SetName(name)
		if err := unstructured.SetNestedField(sample.Object, latency, "status", "latencyMilliseconds"); err != nil {
			t.Fatal(err)
		}
		create(ctx, t, client.Resource(networkmetrics), sample.DeepCopy())
	}
	expectScores(ctx, t, plugin, "the resource appears",
		map[string]int64{"node-1": 100, "node-2": 89, "node-3": 0, "node-4": 63})

	patch := []byte(`{"status": {"latencyMilliseconds": 21}}`)
	if _, err := client.Resource(networkmetrics).Patch(ctx, "node-1", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expectScores(ctx, t, plugin, "a value changes",
		map[string]int64{"node-1": 0, "node-2": 100, "node-3": 54, "node-4": 51})
	if _, err := client.Resource(networkmetrics).Patch(ctx, "node-1", "application/merge-patch+json",
		[]byte(`{"status": null}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expectScores(ctx, t, plugin, "a value goes", map[string]int64{"node-1": 50, "node-2": 100, "node-3": 0, "node-4": 50})
	if got := h.metric(t, "pmk_sched_networkaware_nodes"); got != 2 {
		t.Errorf("%v nodes have a value, want 2", got)
	}
	if err := client.Resource(definitions).Delete(ctx, "networkmetrics.network.example.com",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectScores(ctx, t, plugin, "the resource goes", nil)
	if missing, readable := h.log.count("info: NetworkAware: the resource does not exist"),
		h.log.count("info: NetworkAware reads the resource"); missing > 2 || readable != 1 {
		t.Errorf("one line per change of state is expected: %q", h.log.text)
	}
}

func TestNetworkAwareWithoutPermissionIsNeutral(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	h := newHandle(t, user(ctx, t, "stranger", nil))
	plugin, err := networkaware.New(ctx, arguments, h)
	if err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the log reports it", func(context.Context) (bool, string) {
		return h.log.count("error: NetworkAware: reading the resource is forbidden") == 1, fmt.Sprint(h.log.text)
	})
	expectScores(ctx, t, plugin, "forbidden", nil)
}

// expectScores waits until the nodes node-1 to node-4 have these scores. If want is nil, scoring
// must be skipped.
func expectScores(ctx context.Context, t *testing.T, plugin *networkaware.NetworkAware, what string,
	want map[string]int64) {
	t.Helper()
	var nodes []scheduler.NodeInfo
	for i := range 4 {
		nodes = append(nodes, node{object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i+1)}}})
	}
	run.Eventually(t, what, func(context.Context) (bool, string) {
		cycle, pod := state{}, &corev1.Pod{}
		status := plugin.PreScore(ctx, cycle, pod, nodes)
		if want == nil || !status.IsSuccess() {
			return want == nil && status.Code() == scheduler.CodeSkip, status.String()
		}
		same := true
		seen := map[string]int64{}
		for _, n := range nodes {
			score, status := plugin.Score(ctx, cycle, pod, n)
			seen[n.Node().Name] = score
			same = same && status.IsSuccess() && score == want[n.Node().Name]
		}
		return same, fmt.Sprint(seen)
	})
}

type state map[string]interface{}

func (s state) Read(key string) (interface{}, bool) { v, ok := s[key]; return v, ok }
func (s state) Write(key string, value interface{}) { s[key] = value }
func (s state) Delete(key string)                   { delete(s, key) }

// read returns the object in a file of the testdata of a plugin.
func read(t *testing.T, plugin, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run.Root(), "scheduler", "plugins", plugin, "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// create makes an object, and waits for its resource if that is just being made.
func create(ctx context.Context, t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) {
	t.Helper()
	run.Eventually(t, "create "+object.GetName(), func(context.Context) (bool, string) {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}
