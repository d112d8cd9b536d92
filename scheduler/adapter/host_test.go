package adapter

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// fakeHandle is the part of a handle that has nodes, waiting pods and a configuration.
type fakeHandle struct {
	fwk.Handle
	config   *rest.Config
	snapshot *cache.Snapshot
	waiting  map[types.UID]fwk.WaitingPod
	rejected []types.UID
}

func (h *fakeHandle) KubeConfig() *rest.Config                   { return h.config }
func (h *fakeHandle) SnapshotSharedLister() fwk.SharedLister     { return h.snapshot }
func (h *fakeHandle) GetWaitingPod(uid types.UID) fwk.WaitingPod { return h.waiting[uid] }
func (h *fakeHandle) IterateOverWaitingPods(visit func(fwk.WaitingPod)) {
	for _, pod := range h.waiting {
		visit(pod)
	}
}
func (h *fakeHandle) RejectWaitingPod(uid types.UID) bool {
	h.rejected = append(h.rejected, uid)
	return true
}

func (w *waiting) GetPod() *corev1.Pod         { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}} }
func (w *waiting) GetPendingPlugins() []string { return []string{"Named"} }

func TestHostHasWhatTheFrameworkHas(t *testing.T) {
	handle := &fakeHandle{waiting: map[types.UID]fwk.WaitingPod{"uid": &waiting{}},
		snapshot: cache.NewSnapshot(nil, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}})}
	host := &Host{handle: handle}

	var visited []scheduler.WaitingPod
	host.IterateOverWaitingPods(func(pod scheduler.WaitingPod) { visited = append(visited, pod) })
	if pod := host.GetWaitingPod("uid"); len(visited) != 1 || pod != visited[0] || pod.Pod().UID != "uid" ||
		fmt.Sprint(pod.PendingPlugins()) != "[Named]" {
		t.Errorf("waiting pods: %v and %v", pod, visited)
	}
	if pod := host.GetWaitingPod("other"); pod != nil {
		t.Errorf("a pod that does not wait: %v", pod)
	}
	host.RejectWaitingPod("uid")
	if diff := cmp.Diff([]types.UID{"uid"}, handle.rejected); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}

	nodes, err := host.Nodes().List()
	if err != nil || len(nodes) != 1 || nodes[0].Node().Name != "n1" {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	if node, err := host.Nodes().Get("n1"); err != nil || node.Node().Name != "n1" {
		t.Errorf("node n1: %v, %v", node, err)
	}
	if node, err := host.Nodes().Get("n2"); err == nil || node != nil {
		t.Errorf("a node that does not exist: %v, %v", node, err)
	}

	if config, err := host.KubeConfig(); config != nil || err == nil {
		t.Errorf("without a kubeconfig: %v, %v", config, err)
	}
	handle.config = &rest.Config{Host: "apiserver"}
	config, err := host.KubeConfig()
	if err != nil || config.Host != "apiserver" || config == handle.config {
		t.Errorf("kubeconfig: %v, %v", config, err)
	}
}

// counter is a value of the state of a cycle that is cloned.
type counter struct{ n int }

func (c *counter) Clone() interface{} { clone := *c; return &clone }

// Preemption tries the removal of pods in a copy of the state.
func TestCopiesOfTheStateHaveCopiesOfValues(t *testing.T) {
	own := framework.NewCycleState()
	s := stateOf(own)
	cloned, shared := &counter{1}, &limit{1}
	s.Write("cloned", cloned)
	s.Write("shared", shared)
	own.Write("native", &nativeLimit{1})
	copied := stateOf(own.Clone())
	cloned.n, shared.pods = 2, 2
	got := map[string]interface{}{}
	for _, key := range []string{"cloned", "shared", "native", "unknown"} {
		value, ok := copied.Read(key)
		got[key] = fmt.Sprint(value, ok)
	}
	want := map[string]interface{}{"cloned": "&{1} true", "shared": "&{2} true", "native": "&{1} true",
		"unknown": "<nil> false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Delete("cloned")
	if value, ok := s.Read("cloned"); ok {
		t.Errorf("a deleted value is %v", value)
	}
}

// lines are the lines of a log.
type lines struct{ text []string }

func (*lines) Enabled(context.Context, int) bool { return true }
func (l *lines) Info(_ context.Context, _ int, _ string, keysAndValues []interface{}) {
	l.text = append(l.text, strings.TrimSpace(fmt.Sprintln(keysAndValues...)))
}
func (*lines) Error(context.Context, error, string, []interface{}) {}

func TestTheFirstScoreOutOfBoundsIsLogged(t *testing.T) {
	for score, want := range map[int64]struct {
		score int64
		log   []string
	}{
		-1:  {0, []string{"plugin P score -1 bound 0"}},
		0:   {0, nil},
		100: {100, nil},
		101: {100, []string{"plugin P score 101 bound 100"}},
	} {
		log := &lines{}
		host := &Host{name: "P", log: scheduler.NewLogger(t.Context(), log)}
		for range 2 {
			if got := host.rawScore(score); got != want.score {
				t.Errorf("%d: got %d", score, got)
			}
		}
		if diff := cmp.Diff(want.log, log.text); diff != "" {
			t.Errorf("%d (-want +got):\n%s", score, diff)
		}
	}
}
