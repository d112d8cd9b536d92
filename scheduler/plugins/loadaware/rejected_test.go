package loadaware

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const cpuLimited = server + `, "metrics": [{"name": "cpu", "maxPercent": 80}]}`

// holding returns a plugin that rejected nodes a and b for the pods.
func holding(t *testing.T, pods ...*corev1.Pod) *world {
	t.Helper()
	w := newWorld(t, cpuLimited)
	w.nodes = []*corev1.Node{newNode("a").Node(), newNode("b").Node(), newNode("c").Node()}
	w.measure(0, "cpu", map[string]float64{"a": 0.9, "b": 0.9, "c": 0.1})
	for _, pod := range pods {
		w.reject(pod, "a", "b")
	}
	return w
}

// reject runs Filter, which has to reject the nodes.
func (w *world) reject(pod *corev1.Pod, nodes ...string) {
	w.t.Helper()
	w.pods[pod.UID] = pod
	for _, node := range nodes {
		if w.Filter(w.t.Context(), nil, pod, newNode(node)).IsSuccess() {
			w.t.Fatalf("%s is accepted for %s", node, pod.Name)
		}
	}
}

func TestRejectedPodIsRetriedOnceWhenTheLoadOfANodeFalls(t *testing.T) {
	w := holding(t, newPod("web", ""))
	expect(t, "nothing has changed", nil, w.retried())
	w.measure(0, "cpu", map[string]float64{"a": 0.85, "b": 0.95, "c": 0.05})
	expect(t, "the load is too high", nil, w.retried())
	w.measure(0, "cpu", map[string]float64{"a": 0.7, "b": 0.9})
	expect(t, "the load of a has fallen", []string{"shop/web"}, w.retried())
	w.measure(0, "cpu", map[string]float64{"a": 0.6, "b": 0.7})
	expect(t, "the pod was retried", nil, w.retried())
}

// A pod that another plugin rejects on the node whose load has fallen does not wait for that node
// anymore.
func TestPodThatIsRejectedAgainWaitsForTheNodesOfItsLastAttempt(t *testing.T) {
	web := newPod("web", "")
	w := holding(t, web)
	w.measure(0, "cpu", map[string]float64{"a": 0.7, "b": 0.9})
	expect(t, "a", []string{"shop/web"}, w.retried())
	w.reject(web, "b")
	w.measure(0, "cpu", map[string]float64{"a": 0.6, "b": 0.9})
	expect(t, "a again", nil, w.retried())
	w.measure(0, "cpu", map[string]float64{"a": 0.6, "b": 0.7})
	expect(t, "b", []string{"shop/web"}, w.retried())
}

func TestPodsThatAreNotPendingAreNotRetried(t *testing.T) {
	scheduled, deleted := newPod("scheduled", ""), newPod("deleted", "")
	w := holding(t, scheduled, deleted)
	w.Reserve(t.Context(), nil, scheduled, "c")
	delete(w.pods, deleted.UID)
	w.measure(0, "cpu", map[string]float64{"a": 0.1, "b": 0.1})
	expect(t, "retried", nil, w.retried())
	if len(w.rejections.pods)+len(w.rejections.nodes) != 0 {
		t.Errorf("kept: %v, %v", w.rejections.pods, w.rejections.nodes)
	}
}

func TestPodsThatTheInformerDoesNotHaveAreNotRemembered(t *testing.T) {
	w := holding(t)
	for i := range maxRejected + 10 {
		pod := newPod(fmt.Sprint("p", i), "")
		w.Filter(t.Context(), nil, pod, newNode("a"))
		if expect(t, "nodes", 0, len(w.rejections.nodes)); len(w.rejections.pods) > 0 {
			t.Fatal("an invented pod is remembered")
		}
	}
	for i := range maxRejected + 10 {
		w.reject(newPod(fmt.Sprint("p", i), ""), "a")
	}
	expect(t, "remembered pods", maxRejected, len(w.rejections.pods))
}

// A replica that is not the leader queries Prometheus, but its Filter is not called.
func TestReplicaThatRejectedNothingRetriesNothing(t *testing.T) {
	w := holding(t)
	w.measure(0, "cpu", map[string]float64{"a": 0.1, "b": 0.1})
	expect(t, "retried", nil, w.retried())
}

func TestRetriesAreLimitedByNodeAndFollowPriorityAndAge(t *testing.T) {
	var pods []*corev1.Pod
	high := int32(1000)
	for i := range podsPerNode + 3 {
		pod := newPod(fmt.Sprintf("p%02d", i), "")
		pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(1700000000-i), 0)) // the last one is the oldest
		if i == 0 {
			pod.Spec.Priority = &high
		}
		pods = append(pods, pod)
	}
	w := holding(t, pods...)
	w.measure(0, "cpu", map[string]float64{"a": 0.7, "b": 0.9})
	first := w.retried()
	expect(t, "number of pods", podsPerNode, len(first))
	expect(t, "first pods", []string{"shop/p00", "shop/p34", "shop/p33"}, first[:3])
	w.reject(pods[0], "b")
	expect(t, "the others", []string{"shop/p03", "shop/p02", "shop/p01"}, w.retried())
	expect(t, "all were retried", nil, w.retried())
}

func TestExpectedLoadHoldsAPodToo(t *testing.T) {
	w := newWorld(t, cpuLimited)
	w.nodes = []*corev1.Node{newNode("a").Node()}
	idle := map[string]float64{"a": 0}
	w.measure(0, "cpu", idle)
	first := newPod("first", "3500m")
	w.Reserve(t.Context(), nil, first, "a")
	w.reject(newPod("second", ""), "a")
	w.PostBind(t.Context(), nil, first, "a")
	expect(t, "expected", nil, w.retried())
	w.measure(30*time.Second, "cpu", idle)
	expect(t, "a part is measured", []string{"shop/second"}, w.retried())
}

func TestPodIsRetriedWhenDataIsStaleAndNodesAreNeutral(t *testing.T) {
	w := holding(t, newPod("web", ""))
	w.err = errors.New("unavailable")
	w.clock = w.clock.Add(2 * time.Minute)
	w.round("cpu")
	expect(t, "Prometheus is unavailable", []string{"shop/web"}, w.retried())
}

func TestFailedRetryIsRepeatedAfterTheNextQuery(t *testing.T) {
	w := holding(t, newPod("web", ""))
	w.activate = func(context.Context, *corev1.Pod) error { return errors.New("API server unavailable") }
	w.measure(0, "cpu", map[string]float64{"a": 0.1, "b": 0.1})
	expect(t, "the API server is unavailable", nil, w.retried())
	w.activate = w.handle.Activate
	expect(t, "it is available", []string{"shop/web"}, w.retried())
	expect(t, "log", "LoadAware cannot retry pods; it tries again after the next query err=API server unavailable",
		w.handle.Lines()[1])
}

func TestQuerySignalsRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails at once when all goroutines wait
		w := holding(t, newPod("web", ""))
		<-w.measured // from the first query
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		retried := make(chan string)
		w.activate = func(_ context.Context, pod *corev1.Pod) error { retried <- pod.Name; return nil }
		go func() {
			defer close(ended)
			w.retryAfterQueries(ctx)
		}()
		w.measure(0, "cpu", map[string]float64{"a": 0.1, "b": 0.1})
		expect(t, "retried", "web", <-retried)
		cancel()
		<-ended
	})
}

func TestRejectingDoesNotAllocate(t *testing.T) {
	pod := newPod("web", "")
	w := holding(t, pod)
	ctx := t.Context()
	var n scheduler.NodeInfo = newNode("a")
	if allocs := testing.AllocsPerRun(100, func() { w.Filter(ctx, nil, pod, n) }); allocs != 0 {
		t.Errorf("%v allocations per node", allocs)
	}
}

func TestPermissionToRetryIsDeclaredIfNodesAreRejected(t *testing.T) {
	for args, want := range map[string]int{
		cpuOnly:                                0,
		server + `}`:                           0,
		cpuLimited:                             1,
		server + `, "stale": "Exclude"}`:       1,
		server + `, "metrics": [{"name": ""}]`: -1,
	} {
		rules, err := Rules(scheduler.NewArguments([]byte(args)))
		if want < 0 {
			if err == nil {
				t.Errorf("%s: rules %v", args, rules)
			}
			continue
		}
		if err != nil || len(rules) != want {
			t.Errorf("%s: %v, %v", args, rules, err)
		}
		if want == 1 {
			expect(t, args, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"},
				Verbs: []string{"patch"}}, rules[0])
		}
	}
}
