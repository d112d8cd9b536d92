package adapter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// answering is a plugin that records its calls with their arguments, and answers each with a status
// that names the extension point.
type answering struct{ calls []string }

func (*answering) Name() string { return "Answering" }

func (p *answering) answer(point string, s scheduler.State, arguments ...interface{}) *scheduler.Status {
	call := point
	for _, a := range arguments {
		switch a := a.(type) {
		case *corev1.Pod:
			call += " " + a.Name
		case scheduler.NodeInfo:
			call += " " + a.Node().Name
		default:
			call += " " + fmt.Sprint(a)
		}
	}
	if s != nil {
		last, _ := s.Read("last")
		call += fmt.Sprint(" after ", last)
		s.Write("last", point)
	}
	p.calls = append(p.calls, call)
	return scheduler.Unresolvable(point)
}

func (p *answering) PreEnqueue(_ context.Context, pod *corev1.Pod) *scheduler.Status {
	return p.answer("PreEnqueue", nil, pod)
}
func (p *answering) Less(a, b scheduler.QueuedPod) bool {
	p.answer("Less", nil, a.Pod, a.Priority, a.Attempts, b.Pod, b.Priority, b.Attempts)
	return a.Attempts < b.Attempts
}
func (p *answering) PreFilter(_ context.Context, s scheduler.State, pod *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status) {
	return &scheduler.PreFilterResult{Nodes: []string{"n1", "n2"}}, p.answer("PreFilter", s, pod)
}
func (p *answering) AddPod(_ context.Context, s scheduler.State, pod, other *corev1.Pod,
	n scheduler.NodeInfo) *scheduler.Status {
	return p.answer("AddPod", s, pod, other, n)
}
func (p *answering) RemovePod(_ context.Context, s scheduler.State, pod, other *corev1.Pod,
	n scheduler.NodeInfo) *scheduler.Status {
	return p.answer("RemovePod", s, pod, other, n)
}
func (p *answering) Filter(_ context.Context, s scheduler.State, pod *corev1.Pod,
	n scheduler.NodeInfo) *scheduler.Status {
	return p.answer("Filter", s, pod, n)
}
func (p *answering) PostFilter(_ context.Context, s scheduler.State, pod *corev1.Pod,
	rejected scheduler.Rejections) (string, *scheduler.Status) {
	return "n2", p.answer("PostFilter", s, pod, rejected.Status("n1"))
}
func (p *answering) PreScore(_ context.Context, s scheduler.State, pod *corev1.Pod,
	nodes []scheduler.NodeInfo) *scheduler.Status {
	return p.answer("PreScore", s, pod, len(nodes), nodes[0])
}
func (p *answering) Score(_ context.Context, s scheduler.State, pod *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	return 7, p.answer("Score", s, pod, n)
}
func (p *answering) NormalizeScore(_ context.Context, s scheduler.State, pod *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	status := p.answer("NormalizeScore", s, pod, scores)
	scores[0].Score++
	return status
}
func (p *answering) Reserve(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return p.answer("Reserve", s, pod, node)
}
func (p *answering) Unreserve(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) {
	p.answer("Unreserve", s, pod, node)
}
func (p *answering) Permit(_ context.Context, s scheduler.State, pod *corev1.Pod,
	node string) (*scheduler.Status, time.Duration) {
	return p.answer("Permit", s, pod, node), time.Hour
}
func (p *answering) PreBindPreFlight(_ context.Context, s scheduler.State, pod *corev1.Pod,
	node string) *scheduler.Status {
	return p.answer("PreBindPreFlight", s, pod, node)
}
func (p *answering) PreBind(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return p.answer("PreBind", s, pod, node)
}
func (p *answering) Bind(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return p.answer("Bind", s, pod, node)
}
func (p *answering) PostBind(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) {
	p.answer("PostBind", s, pod, node)
}
func (p *answering) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	if pod.Name == "signed" {
		return "part", nil
	}
	return "part", p.answer("Sign", nil, pod)
}
func (*answering) EventsToRegister() []scheduler.ClusterEvent { return nil }

func TestEveryPointPassesOnTheCallAndTheAnswer(t *testing.T) {
	p := &answering{}
	e := newEverything(t, p)
	ctx, state, info := t.Context(), framework.NewCycleState(), framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	pod, priority := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, int32(5)
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	urgent := pod.DeepCopy()
	urgent.Name, urgent.Spec.Priority = "u", &priority
	rejected := framework.NewNodeToStatus(map[string]*fwk.Status{"n1": fwk.NewStatus(fwk.Unschedulable, "full")}, nil)
	expect := func(point string, got *fwk.Status, call string) {
		t.Helper()
		if got.Code() != fwk.UnschedulableAndUnresolvable || got.Message() != point {
			t.Errorf("%s: %v", point, got)
		}
		want := point + " " + call
		if last := p.calls[len(p.calls)-1]; !strings.HasPrefix(last, want) {
			t.Errorf("got the call %q, want %q", last, want)
		}
	}
	equal := func(point string, got, want interface{}) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", point, diff)
		}
	}
	expect("PreEnqueue", e.PreEnqueue(ctx, pod), "p")
	considered, status := e.PreFilter(ctx, state, pod, nil)
	expect("PreFilter", status, "p after <nil>")
	equal("PreFilter", considered.NodeNames, sets.New("n1", "n2"))
	expect("AddPod", e.PreFilterExtensions().AddPod(ctx, state, pod, &framework.PodInfo{Pod: other}, info),
		"p o n1 after PreFilter")
	expect("RemovePod", e.PreFilterExtensions().RemovePod(ctx, state, pod, &framework.PodInfo{Pod: other}, info),
		"p o n1 after AddPod")
	expect("Filter", e.Filter(ctx, state, pod, info), "p n1 after RemovePod")
	nominated, status := e.PostFilter(ctx, state, pod, rejected)
	expect("PostFilter", status, "p Unschedulable: full after Filter")
	equal("PostFilter", nominated.NominatedNodeName, "n2")
	expect("PreScore", e.PreScore(ctx, state, pod, []fwk.NodeInfo{info, info}), "p 2 n1 after PostFilter")
	score, status := e.Score(ctx, state, pod, info)
	expect("Score", status, "p n1 after PreScore")
	scores := fwk.NodeScoreList{{Name: "n1", Score: score}, {Name: "n2", Score: 3}}
	expect("NormalizeScore", e.ScoreExtensions().NormalizeScore(ctx, state, pod, scores), "p [{n1 7} {n2 3}] after Score")
	equal("NormalizeScore", scores, fwk.NodeScoreList{{Name: "n1", Score: 8}, {Name: "n2", Score: 3}})
	expect("Reserve", e.Reserve(ctx, state, pod, "n1"), "p n1 after NormalizeScore")
	status, timeout := e.Permit(ctx, state, pod, "n1")
	expect("Permit", status, "p n1 after Reserve")
	equal("Permit", timeout, time.Hour)
	_, status = e.PreBindPreFlight(ctx, state, pod, "n1")
	expect("PreBindPreFlight", status, "p n1 after Permit")
	expect("PreBind", e.PreBind(ctx, state, pod, "n1"), "p n1 after PreBindPreFlight")
	expect("Bind", e.Bind(ctx, state, pod, "n1"), "p n1 after PreBind")
	e.Unreserve(ctx, state, pod, "n1")
	e.PostBind(ctx, state, pod, "n1")
	equal("PostBind", p.calls[len(p.calls)-2:], []string{"Unreserve p n1 after Bind", "PostBind p n1 after Unreserve"})
	_, status = e.SignPod(ctx, pod)
	expect("Sign", status, "p")
	signed := pod.DeepCopy()
	signed.Name = "signed"
	fragments, status := e.SignPod(ctx, signed)
	if status != nil || len(fragments) != 1 || fragments[0].Key != "Answering" || fragments[0].Value != "part" {
		t.Errorf("Sign: %v %v", fragments, status)
	}
	first := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}, Attempts: 1}
	second := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: urgent}, Attempts: 2}
	equal("Less", []bool{e.Less(first, second), e.Less(second, first)}, []bool{true, false})
	equal("Less", p.calls[len(p.calls)-2:], []string{"Less p 0 1 u 5 2", "Less u 5 2 p 0 1"})
}

func TestPluginsWithoutTheOptionalMethodsHaveNoExtensions(t *testing.T) {
	if got := (&PreFilterPoint{Plugin: &rejecting{}}).PreFilterExtensions(); got != nil {
		t.Errorf("got %v", got)
	}
	if got := (&ScorePoint{Plugin: &scoring{}}).ScoreExtensions(); got != nil {
		t.Errorf("got %v", got)
	}
}

// unrestricted is a plugin that considers all nodes and nominates none.
type unrestricted struct{ rejecting }

func (*unrestricted) PreFilter(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status) {
	return nil, nil
}

func (*unrestricted) PostFilter(context.Context, scheduler.State, *corev1.Pod, scheduler.Rejections) (string,
	*scheduler.Status) {
	return "", nil
}

func TestPluginsMayConsiderAllNodesAndNominateNone(t *testing.T) {
	p, host, state := &unrestricted{}, &Host{}, framework.NewCycleState()
	considered, status := (&PreFilterPoint{host, p}).PreFilter(t.Context(), state, &corev1.Pod{}, nil)
	if considered != nil || status != nil {
		t.Errorf("PreFilter: %v %v", considered, status)
	}
	nominated, status := (&PostFilterPoint{host, p}).PostFilter(t.Context(), state, &corev1.Pod{}, nil)
	if nominated != nil || status != nil {
		t.Errorf("PostFilter: %v %v", nominated, status)
	}
}

// A queue must have an order, whatever the plugin does.
func TestPodsAreOrderedByPriorityAndTimeIfThePluginPanics(t *testing.T) {
	panics, err := newPanics(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &QueueSortPoint{Host: &Host{panics: panics, log: scheduler.NewLogger(t.Context(), &lines{})}, Plugin: &broken{}}
	queued := func(priority int32, second int64) *framework.QueuedPodInfo {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: &priority}}
		return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}, Timestamp: time.Unix(second, 0)}
	}
	for _, c := range []struct {
		a, b *framework.QueuedPodInfo
		want bool
	}{
		{queued(2, 9), queued(1, 1), true},
		{queued(1, 1), queued(2, 9), false},
		{queued(1, 1), queued(1, 2), true},
		{queued(1, 2), queued(1, 1), false},
		{queued(1, 1), queued(1, 1), false},
	} {
		if got := p.Less(c.a, c.b); got != c.want {
			t.Errorf("%v before %v: %t", c.a.Timestamp, c.b.Timestamp, got)
		}
	}
}
