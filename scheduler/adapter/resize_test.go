package adapter

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// rejecting is a plugin that rejects each pod.
type rejecting struct{}

func (*rejecting) Name() string { return "Rejecting" }

func (*rejecting) PreEnqueue(context.Context, *corev1.Pod) *scheduler.Status {
	return scheduler.Unresolvable("no")
}

func (*rejecting) PreFilter(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status) {
	return nil, scheduler.Unresolvable("no")
}

func (*rejecting) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return scheduler.Unresolvable("no")
}

func (*rejecting) PostFilter(context.Context, scheduler.State, *corev1.Pod, scheduler.Rejections) (string,
	*scheduler.Status) {
	return "n2", nil
}

// A pod with a node is in the queue because its resize is deferred.
func TestPluginsDoNotRejectAPodThatIsResized(t *testing.T) {
	p, host := &rejecting{}, &Host{}
	enqueue, pre, filter := PreEnqueuePoint{host, p}, PreFilterPoint{host, p}, FilterPoint{host, p}
	post := PostFilterPoint{host, p}
	for node, want := range map[string][4]fwk.Code{
		"":   {unresolvable, unresolvable, unresolvable, success},
		"n1": {success, skip, success, unschedulable},
	} {
		pod, state, info := &corev1.Pod{}, framework.NewCycleState(), framework.NewNodeInfo()
		pod.Spec.NodeName = node
		info.SetNode(&corev1.Node{})
		_, preFiltered := pre.PreFilter(t.Context(), state, pod, nil)
		nominated, postFiltered := post.PostFilter(t.Context(), state, pod, nil)
		got := [4]fwk.Code{enqueue.PreEnqueue(t.Context(), pod).Code(), preFiltered.Code(),
			filter.Filter(t.Context(), state, pod, info).Code(), postFiltered.Code()}
		if got != want || (nominated != nil) != (node == "") {
			t.Errorf("node %q: %v, nominated %v; want %v", node, got, nominated, want)
		}
	}
}
