package preflight

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func TestUsesHostPort(t *testing.T) {
	cases := map[string]struct {
		hostNetwork bool
		container   corev1.Container
		want        bool
	}{
		"host port": {false, corev1.Container{Ports: []corev1.ContainerPort{{HostPort: 10260}}}, true},
		"container port": {false, corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 10260}}},
			false},
		"flag in the host's network": {true, corev1.Container{Args: []string{"--secure-port=10260"}}, true},
		"flag in the pod's network":  {false, corev1.Container{Args: []string{"--secure-port=10260"}}, false},
		"another flag":               {true, corev1.Container{Args: []string{"--leader-elect=10260", "10260"}}, false},
		"another port": {true, corev1.Container{Command: []string{"kube-scheduler", "--secure-port=10259"}},
			false},
		"insecure port of old releases": {true, corev1.Container{Command: []string{"kube-scheduler", "-port=10260"}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: tc.hostNetwork, Containers: []corev1.Container{tc.container}}}
			if got := usesHostPort(pod, 10260); got != tc.want {
				t.Errorf("uses it: %t", got)
			}
		})
	}
}

// pagedCluster serves nodes and pods in pages, with the field selectors of nodes that pods have.
type pagedCluster struct {
	nodes []corev1.Node
	pods  []corev1.Pod
	// lists counts the lists of pods.
	lists int
}

func (c *pagedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page := func(n int) (int, metav1.ListMeta) {
		if limit == 0 || from+limit >= n {
			return n, metav1.ListMeta{}
		}
		return from + limit, metav1.ListMeta{Continue: strconv.Itoa(from + limit)}
	}
	if strings.HasSuffix(r.URL.Path, "/nodes") {
		to, meta := page(len(c.nodes))
		_ = json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			ListMeta: meta, Items: c.nodes[from:to]})
		return
	}
	c.lists++
	var pods []corev1.Pod
	node, one := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
	for _, pod := range c.pods {
		if !one || pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	to, meta := page(len(pods))
	_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: meta, Items: pods[from:to]})
}

func (c *pagedCluster) preflight(t *testing.T, port int) *preflight {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	return &preflight{Options: Options{Name: "s", Port: port}, kube: kube, retry: &kubeapi.Retrier{},
		nodes: labels.Everything()}
}

// newNodes returns ready nodes that are sorted by name, as an API server lists them.
func newNodes(prefix string, n int, taints ...corev1.Taint) []corev1.Node {
	var nodes []corev1.Node
	for i := range n {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", prefix, i)},
			Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	return nodes
}

func TestEveryNodeIsAskedWhetherItAcceptsThePod(t *testing.T) {
	gpu := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		nodes  []corev1.Node
		detail string
		failed string
	}{
		"the first 16 have a taint": {nodes: slices.Concat(newNodes("a-gpu", 16, gpu), newNodes("pool", 4)),
			detail: "pool-000, pool-001, pool-002, pool-003"},
		"the first pages have a taint": {nodes: slices.Concat(newNodes("a-gpu", 2*objectPage, gpu), newNodes("pool", 1)),
			detail: "pool-000"},
		"many accept it": {nodes: newNodes("pool", 18), detail: "pool-015, and 2 more"},
		"all have a taint": {nodes: newNodes("a-gpu", 20, gpu),
			failed: "a-gpu-015 has the taint nvidia.com/gpu=present:NoSchedule; and 4 more"},
		"no node": {failed: "no node has the label"},
	} {
		t.Run(name, func(t *testing.T) {
			detail, err := (&pagedCluster{nodes: tc.nodes}).preflight(t, 0).controlPlaneNode(t.Context())
			if (err == nil) != (tc.failed == "") || err != nil && !strings.Contains(err.Error(), tc.failed) ||
				!strings.HasSuffix(detail, tc.detail) {
				t.Errorf("got %q, %v", detail, err)
			}
		})
	}
}

func TestNodesOfSeveralPlatformsAreAWarning(t *testing.T) {
	gpu := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	of := func(architecture string, nodes []corev1.Node) []corev1.Node {
		for i := range nodes {
			nodes[i].Status.NodeInfo.Architecture = architecture
		}
		return nodes
	}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  string
	}{
		"one platform": {of("arm64", newNodes("a", 3)), ""},
		"two": {slices.Concat(of("arm64", newNodes("a", 3)), of("amd64", newNodes("b", 1))),
			"(1 linux/amd64, 3 linux/arm64)"},
		"after the first page": {slices.Concat(of("arm64", newNodes("a", objectPage)), of("amd64", newNodes("b", 1))),
			"(1 linux/amd64, 250 linux/arm64)"},
		"others accept no pod": {slices.Concat(of("arm64", newNodes("a", 3)), of("amd64", newNodes("b", 1, gpu))), ""},
		"unknown":              {newNodes("a", 3), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&pagedCluster{nodes: tc.nodes}).preflight(t, 0).onePlatform(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPortIsFreeOnEverySelectedNode(t *testing.T) {
	onNode := func(node string, port int32) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}, Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: port}}}}}}
	}
	own := onNode("n-000", 10260)
	own.Labels = ownership.Labels("s")
	filler := slices.Repeat([]corev1.Pod{onNode("n-000", 1)}, objectPage)
	for name, tc := range map[string]struct {
		nodes  int
		pods   []corev1.Pod
		taken  int
		failed string
		lists  int
	}{
		"free on few nodes":         {nodes: 3, pods: filler, lists: 3},
		"in use on the last of few": {nodes: 3, pods: []corev1.Pod{onNode("n-002", 10260)}, failed: "node n-002", lists: 3},
		"in use on the last of many": {nodes: 40, pods: append(filler, onNode("n-039", 10260)), failed: "node n-039",
			lists: 2},
		"in use on another node":         {nodes: 40, pods: []corev1.Pod{onNode("other", 10260)}, lists: 1},
		"in use by the scheduler itself": {nodes: 1, pods: []corev1.Pod{own}, lists: 1},
		"in use by it and another": {nodes: 1, pods: []corev1.Pod{own, onNode("n-000", 10260)},
			failed: "port 10260 of node n-000 is in use by Pod/n/p", lists: 1},
		"of few nodes there are 16":  {nodes: fewNodes, lists: fewNodes},
		"of many nodes there are 17": {nodes: fewNodes + 1, lists: 1},
		"known to be taken":          {nodes: 1, taken: 10260, failed: "port 10260 is in use by pod other"},
		"another one is taken":       {nodes: 1, taken: 10261, lists: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &pagedCluster{nodes: newNodes("n", tc.nodes), pods: tc.pods}
			p := c.preflight(t, 10260)
			p.TakenPorts = map[int]string{tc.taken: "pod other"}
			_, err := p.portFree(t.Context())
			if (err == nil) != (tc.failed == "") || err != nil && !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("got %v", err)
			}
			if err != nil && !slices.Contains(problem.Hints(err), "choose another with --port") {
				t.Errorf("hints %q", problem.Hints(err))
			}
			if c.lists != tc.lists {
				t.Errorf("%d lists of pods, want %d", c.lists, tc.lists)
			}
		})
	}
}
