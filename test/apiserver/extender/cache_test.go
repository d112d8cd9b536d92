//go:build linux

package extender_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/extender"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
)

// room filters nodes by their free cores, and scores them so.
type room struct{}

func (room) Name() string { return "Room" }

func (room) Filter(_ context.Context, _ scheduler.State, _ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
	if n.Node().Spec.Unschedulable {
		return scheduler.Unresolvable("is cordoned")
	}
	if n.Requested().MilliCPU+1000 > n.Allocatable().MilliCPU {
		return scheduler.Unschedulable("is full")
	}
	return nil
}

func (room) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	return 100 - 10*int64(n.PodCount()), nil
}

func newRoom(context.Context, *extender.Handle) (scheduler.Plugin, error) { return room{}, nil }

func TestTheCacheFollowsTheCluster(t *testing.T) {
	c := newScene(t, "follows")
	c.node("follows-a")
	c.node("follows-b")
	c.pod("before", "follows-a")
	running, handle := c.serve(newRoom)
	is := func(want string) {
		t.Helper()
		got := ""
		c.until("filter answers "+want, func() bool {
			got = c.filtered(running, "follows-a", "follows-b", "follows-c")
			return got == want
		})
	}
	is("[follows-a follows-b] map[follows-c:the extender does not know the node yet]")
	if diff := cmp.Diff(map[string]int64{"follows-a": 9, "follows-b": 10, "follows-c": 0},
		c.scores(running, "follows-a", "follows-b", "follows-c")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"one", "two", "three"} {
		c.pod(name, "follows-a")
	}
	is("[follows-b] map[follows-a:is full follows-c:the extender does not know the node yet]")
	c.gone("two")
	c.node("follows-c")
	is("[follows-a follows-b follows-c] map[]")
	_, err := c.kube.CoreV1().Nodes().Patch(c.ctx, "follows-b", "application/merge-patch+json",
		[]byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{})
	c.must(err)
	is("[follows-a follows-c] map[follows-b:is cordoned]")
	// A pod that has ended requests nothing, although its object exists.
	_, err = c.kube.CoreV1().Pods(c.name).Patch(c.ctx, "one", "application/merge-patch+json",
		[]byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
	c.must(err)
	c.until("the pod that ended is not counted", func() bool {
		n, err := handle.Cache().Get("follows-a")
		return err == nil && n.PodCount() == 2 && n.Requested().MilliCPU == 2000
	})
}

func TestBindBindsThePodThatWasMeant(t *testing.T) {
	c := newScene(t, "binds")
	c.node("binds-a")
	running, _ := c.serve(newRoom)
	pod := c.pod("web", "")
	bind := func(uid string) string {
		return ask[extenderv1.ExtenderBindingResult](c, running, extender.VerbBind,
			map[string]string{"PodName": "web", "PodNamespace": c.name, "PodUID": uid, "Node": "binds-a"}).Error
	}
	if got := bind("another-uid"); !strings.Contains(got, "was replaced") {
		t.Errorf("another pod of the name: %q", got)
	}
	if got := bind(string(pod.UID)); got != "" {
		t.Errorf("got %q", got)
	}
	bound, err := c.kube.CoreV1().Pods(c.name).Get(c.ctx, "web", metav1.GetOptions{})
	c.must(err)
	if bound.Spec.NodeName != "binds-a" {
		t.Errorf("the pod is on node %q", bound.Spec.NodeName)
	}
	if got := bind(string(pod.UID)); !strings.Contains(got,
		"extender pmk-extender: bind: bind pod binds/web to node binds-a") {
		t.Errorf("a second time: %q", got)
	}
	c.gone("web")
	c.until("the pod is gone", func() bool { return strings.Contains(bind(string(pod.UID)), "pod binds/web is gone") })
}

// The load of a burst of pods is not measured yet. An extender does not learn which node was
// chosen, but sees the bindings.
func TestLoadAwareCountsPodsThatWereJustBound(t *testing.T) {
	c := newScene(t, "herd")
	c.node("herd-a")
	c.node("herd-b")
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[
			{"metric":{"instance":"herd-a"},"value":[9999999999,"0"]},{"metric":{"instance":"herd-b"},"value":[9999999999,"0.25"]}]}}`))
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(prometheus.Close)
	running, _ := c.serve(func(ctx context.Context, h *extender.Handle) (scheduler.Plugin, error) {
		return loadaware.New(ctx,
			scheduler.NewArguments([]byte(`{"prometheus": {"url": "`+prometheus.URL+
				`"}, "interval": "100ms", "metrics": [{"name": "cpu"}]}`)), h)
	})
	if diff := cmp.Diff(map[string]int64{"herd-a": 10, "herd-b": 8}, c.scores(running, "herd-a", "herd-b")); diff != "" {
		t.Fatal(diff)
	}
	for _, name := range []string{"one", "two"} {
		c.pod(name, "herd-a")
	}
	c.until("the pods count", func() bool { return c.scores(running, "herd-a")["herd-a"] == 5 })
	if got := c.scores(running, "herd-b")["herd-b"]; got != 8 {
		t.Errorf("a node without new pods scores %d", got)
	}
}
