package extender

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
)

// cluster is an API server with fixed nodes and pods, and with custom objects that change.
type cluster struct {
	*httptest.Server
	objects map[string][]interface{} // by the last part of the path
	changed chan interface{}         // a new version of a custom object

	mu      sync.Mutex
	patched []string
}

func startCluster(t *testing.T, objects map[string][]interface{}) *cluster {
	t.Helper()
	c := &cluster{objects: objects, changed: make(chan interface{})}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.CloseClientConnections)
	return c
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.patched = append(c.patched, r.URL.Path)
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Pod"}`))
	case r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
	case !r.URL.Query().Has("watch"):
		items := c.objects[kind]
		if items == nil {
			items = []interface{}{}
		}
		kinds := map[string]string{"nodes": "NodeList", "pods": "PodList"}
		_ = json.NewEncoder(w).Encode(map[string]interface{}{"apiVersion": "v1", "kind": cmp.Or(kinds[kind], "List"),
			"metadata": map[string]interface{}{"resourceVersion": "1"}, "items": items})
	default:
		c.watch(w, r, kind)
	}
}

// watch sends the changes of custom objects.
func (c *cluster) watch(w http.ResponseWriter, r *http.Request, kind string) {
	changed := c.changed
	if kind == "pods" || kind == "nodes" {
		changed = nil
	}
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case object := <-changed:
			_ = json.NewEncoder(w).Encode(map[string]interface{}{"type": "MODIFIED", "object": object})
		}
	}
}

// patches returns the paths of the first n patches or more.
func (c *cluster) patches(t *testing.T, n int) []string {
	t.Helper()
	var patched []string
	eventually(t, fmt.Sprintf("%d pods are retried", n), func() (bool, string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		patched = slices.Clone(c.patched)
		return len(patched) >= n, fmt.Sprint(patched)
	})
	return patched
}

// eventually waits until something holds, and fails the test with what was seen last if that takes
// too long.
func eventually(t testing.TB, what string, holds func() (ok bool, seen string)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		ok, seen := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s: %s", what, seen)
		}
	}
}

// rejecting is a policy that rejects a pod of two cores on node n until its custom object changes.
type rejecting struct {
	Registration
	resource string
	object   func(version string) map[string]interface{}
}

func custom(apiVersion, kind, namespace, name, version string, content map[string]interface{}) map[string]interface{} {
	object := map[string]interface{}{"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]interface{}{"namespace": namespace, "name": name, "resourceVersion": version}}
	for field, value := range content {
		object[field] = value
	}
	return object
}

func policiesThatReject() map[string]rejecting {
	return map[string]rejecting{
		elasticquota.Name: {Register(elasticquota.Name, elasticquota.New), "elasticquotas",
			func(version string) map[string]interface{} {
				return custom("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "default", "team", version, map[string]interface{}{
					"spec": map[string]interface{}{"max": map[string]interface{}{"cpu": "1"}}})
			}},
		numaaware.Name: {Register(numaaware.Name, numaaware.New), "noderesourcetopologies",
			func(version string) map[string]interface{} {
				return custom("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", "", "n", version, map[string]interface{}{
					"topologyPolicies": []interface{}{"SingleNUMANodePodLevel"},
					"zones": []interface{}{map[string]interface{}{"name": "node-0", "type": "Node", "resources": []interface{}{
						map[string]interface{}{"name": "cpu", "capacity": "8", "allocatable": "8", "available": "1"}}}}})
			}},
	}
}

// rejectedPod returns a pod that the policies reject.
func rejectedPod(name, uid, node string) *corev1.Pod {
	pod := newPod(name, node, 2000)
	pod.UID = types.UID(uid)
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return pod
}

// A caller without a certificate may send any pod. Only pods that are pending in the cluster are
// kept and, with the rights of the extender, patched when they are retried.
func TestOnlyPendingPodsOfTheClusterAreKeptAndRetried(t *testing.T) {
	const annotation, invented = 1 << 20, 60
	for name, policy := range policiesThatReject() {
		t.Run(name, func(t *testing.T) {
			api := startCluster(t, map[string][]interface{}{"nodes": {newNode("n", nil)}, policy.resource: {policy.object("1")},
				"pods": {rejectedPod("web", "u-web", ""), rejectedPod("bound", "u-bound", "n")}})
			handle, err := NewHandle(HandleOptions{Config: &rest.Config{Host: api.URL}})
			if err != nil {
				t.Fatal(err)
			}
			plugin, err := policy.New(t.Context(), NewArguments(nil).ForPlugin(), handle)
			if err != nil {
				t.Fatal(err)
			}
			server, _ := serveWith(t, nil, Options{Handle: handle}, plugin)
			if err := handle.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			filter := func(pod *corev1.Pod) bool {
				got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
					extenderv1.ExtenderArgs{Pod: pod, NodeNames: names("n")})
				return got.Error == "" && len(*got.NodeNames) == 0
			}
			web := rejectedPod("web", "u-web", "")
			eventually(t, "the cluster and the custom object are read", func() (bool, string) {
				return filter(web), "the pod is not rejected"
			})
			before := heapBytes()
			for i := range invented {
				pod := rejectedPod(fmt.Sprint("invented-", i), fmt.Sprint("u-", i), "")
				pod.Annotations = map[string]string{"long": strings.Repeat("a", annotation)}
				filter(pod)
			}
			if grown := int64(heapBytes() - before); grown > invented*annotation/4 {
				t.Errorf("%d pods that do not exist take %d MiB", invented, grown>>20)
			}
			for _, pod := range []*corev1.Pod{web, rejectedPod("web", "u-other", ""), rejectedPod("bound", "u-bound", "")} {
				filter(pod)
			}
			api.changed <- policy.object("2")
			api.patches(t, 1)
			filter(web)
			api.changed <- policy.object("3") // when its patch has arrived, the first retry has ended
			want := "/api/v1/namespaces/default/pods/web/status"
			if got := slices.Compact(api.patches(t, 2)); !slices.Equal(got, []string{want}) {
				t.Errorf("%d paths were patched, the first are %.3q", len(got), got[:min(3, len(got))])
			}
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
