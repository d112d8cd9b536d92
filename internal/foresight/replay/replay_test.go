package replay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func node(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: "m5"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}
}

// pod returns a pod that requests 1 CPU: NAME, with a node, a phase and a nominated node.
func pod(name, node, phase string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(phase)},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

func nominated(node string, priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.NominatedNodeName, p.Spec.Priority = node, &priority
	}
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }

const minute = time.Minute

func TestLivesOfPods(t *testing.T) {
	h := newHistory(60*minute, nil)
	h.Node(0, node("a", "4"))
	h.Start(pod("old", "a", "Running"))
	h.Start(pod("done", "a", "Succeeded"))
	h.Pod(1*minute, pod("batch", "", "Pending"))
	h.Pod(3*minute, pod("batch", "a", "Pending"))
	h.Pod(5*minute, pod("gated", "", "Pending", gated))
	h.Pod(9*minute, pod("gated", "", "Pending"))
	h.Pod(10*minute, pod("web", "a", "Running"))
	h.Pod(13*minute, pod("batch", "a", "Succeeded"))
	h.PodGone(14*minute, pod("batch", "a", "Succeeded"))
	h.Pod(20*minute, pod("web", "a", "Running", deleting))
	h.PodGone(21*minute, pod("web", "", ""))
	h.Pod(30*minute, pod("victim", "a", "Running"))
	h.Pod(40*minute, pod("victim", "a", "Running", deleting))
	h.Pod(40*minute+time.Second, pod("high", "", "Pending", nominated("a", 100)))
	h.PodGone(40*minute+30*time.Second, pod("victim", "a", "Running"))
	h.PodGone(50*minute, pod("old", "", ""))
	h.Finish()

	var got []string
	for _, l := range h.Lives() {
		text := fmt.Sprintf("%s arrived %s bound %t %s", l.Name, l.Arrived, l.IsBound, l.Bound)
		for _, bound := range []time.Duration{0, 30 * minute} {
			end, ok := l.EndOf(bound)
			text += fmt.Sprintf("; bound at %s it ends %s %t", bound, end, ok)
		}
		got = append(got, text)
	}
	want := []string{
		"old arrived 0s bound true 0s; bound at 0s it ends 50m0s true; bound at 30m0s it ends 50m0s true",
		"batch arrived 1m0s bound true 3m0s; bound at 0s it ends 10m0s true; bound at 30m0s it ends 40m0s true",
		"gated arrived 9m0s bound false 0s; bound at 0s it ends 0s false; bound at 30m0s it ends 0s false",
		"web arrived 10m0s bound true 10m0s; bound at 0s it ends 20m0s true; bound at 30m0s it ends 20m0s true",
		"victim arrived 30m0s bound true 30m0s; bound at 0s it ends 0s false; bound at 30m0s it ends 0s false",
		"high arrived 40m1s bound false 0s; bound at 0s it ends 0s false; bound at 30m0s it ends 0s false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o := h.Outcome()
	o.Points = nil
	wantOutcome := Outcome{
		Arrived: 5, Placed: 3, Ended: 3, Evicted: 1, MostWaiting: 2,
		Waiting: Waiting{Mean: 40, P90: 120, P99: 120, Max: 120},
		Mean: Values{Nodes: 1, Running: 1.358, Waiting: 1.216,
			Utilization: map[string]float64{"cpu": 0.339583}},
	}
	if diff := cmp.Diff(wantOutcome, o); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func fixed(p *corev1.Pod) {
	controller := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &controller}}
}

// deletedTwice is a pod whose deletion is observed at the beginning and once more.
func deletedTwice(h *History) {
	h.Start(pod("twice", "a", "Running", deleting))
	h.Pod(2*minute, pod("twice", "a", "Running", deleting))
	h.PodGone(3*minute, pod("twice", "a", "Running"))
}

func TestLivesAtTheirEdges(t *testing.T) {
	h := newHistory(60*minute, nil)
	h.Node(0, node("a", "4"))
	h.Start(pod("waits", "", "Pending", func(p *corev1.Pod) { p.Spec.Priority = new(int32(3)) }))
	h.Start(pod("agent", "a", "Running", fixed))
	deletedTwice(h)
	h.Pod(1*minute, pod("ended", "a", "Failed")) // never seen before
	h.PodGone(1*minute, pod("unknown", "a", "Running"))
	h.Pod(4*minute, pod("waits", "a", "Pending"))
	h.Pod(5*minute, pod("waits", "b", "Running")) // a node does not change
	h.Pod(6*minute, pod("waits", "a", "Failed"))
	h.Pod(7*minute, pod("waits", "a", "Failed"))
	h.PodGone(8*minute, pod("waits", "a", "Failed"))
	h.PodGone(9*minute, pod("waits", "a", "Failed"))
	h.Pod(10*minute, pod("given-up", "", "Pending"))
	h.Pod(11*minute, pod("given-up", "", "Pending", deleting))
	h.PodGone(12*minute, pod("given-up", "", "Pending", deleting))
	unscheduled := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	}
	h.Pod(13*minute, pod("unscheduled", "", "Pending", unscheduled))
	h.Finish()

	cpu := report.Amounts{"cpu": 1000, "pods": 1}
	life := func(name string, l Life) *Life {
		l.ID, l.Namespace, l.Name, l.Requests = "uid-"+name, "n", name, cpu
		return &l
	}
	want := []*Life{
		life("waits", Life{Before: true, IsBound: true, Bound: 4 * minute, Node: "a", IsEnded: true, Finished: true,
			Ended: 6 * minute, Priority: 3}),
		life("agent", Life{Before: true, IsBound: true, Node: "a", Fixed: true}),
		life("twice", Life{Before: true, IsBound: true, Node: "a", IsEnded: true}),
		life("given-up", Life{Arrived: 10 * minute, IsEnded: true, Ended: 12 * minute}),
		life("unscheduled", Life{Arrived: 13 * minute}),
	}
	if diff := cmp.Diff(want, h.Lives(), cmpopts.IgnoreUnexported(Life{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, deleted := range map[string]bool{"waits": false, "agent": false, "twice": true, "given-up": true} {
		l := h.Life("uid-" + name)
		if at, ok := l.IsDeleted(); ok != deleted || ok && at != l.Ended {
			t.Errorf("%s is deleted at %s: %t", name, at, ok)
		}
	}
	if h.Current("n/agent") == nil || h.Current("n/given-up") != nil || h.Life("unknown") != nil {
		t.Error("a pod is current that is gone, or is not although it is there")
	}
	o := h.Outcome()
	o.Points, o.Mean = nil, Values{}
	if diff := cmp.Diff(Outcome{Arrived: 2, Placed: 1, Ended: 3, MostWaiting: 1,
		Waiting: Waiting{Mean: 240, P50: 240, P90: 240, P99: 240, Max: 240}}, o); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if got := h.Tally.Values(); got.Running != 1 || got.Waiting != 1 {
		t.Errorf("in the end: %+v", got)
	}
}

// Nodes and pods count from the time of their events on.
func TestFiguresFollowTheEvents(t *testing.T) {
	h := newHistory(100*minute, nil)
	h.Node(0, node("a", "4"))
	h.Node(25*minute, node("b", "4"))
	h.Pod(50*minute, pod("p", "a", "Running"))
	h.PodGone(60*minute, pod("p", "a", "Running"))
	h.NodeGone(75*minute, "b")
	h.NodeGone(80*minute, "unknown")
	h.Finish()
	want := Values{Nodes: 1.5, Running: 0.1, Utilization: map[string]float64{"cpu": 0.0125}}
	if diff := cmp.Diff(want, h.Outcome().Mean); diff != "" {
		t.Errorf("mean (-want +got):\n%s", diff)
	}
}

// A pod of a trace that does not know the nodes.
func TestATraceHasBoundPodsWithoutNodes(t *testing.T) {
	scheduled := func(p *corev1.Pod) {
		p.UID = ""
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	h := newHistory(60*minute, nil)
	h.Pod(0, pod("p", "", "Pending", func(p *corev1.Pod) { p.UID = "" }))
	h.Pod(minute, pod("p", "", "Running", scheduled))
	h.PodGone(11*minute, pod("p", "", "Succeeded", func(p *corev1.Pod) { p.UID = "" }))
	h.Finish()
	l := h.Life("n/p")
	if end, ok := l.EndOf(5 * minute); l.Node != "" || end != 15*minute || !ok {
		t.Errorf("%+v ends %s %t", l, end, ok)
	}
}

// A pod was evicted by the scheduler if a pod of higher priority was nominated for its node at most
// 5 seconds before its deletion, or after it was gone.
func TestEvictionsHaveANominationAtTheirTime(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		nominated time.Duration // relative to the deletion of the victim, which is gone 10 s later
		priority  int32
		node      string
		want      bool
	}{
		"5 s before":             {-5 * second, 8, "a", true},
		"6 s before":             {-6 * second, 8, "a", false},
		"while it ends":          {7 * second, 8, "a", true},
		"5 s after it was gone":  {15 * second, 8, "a", true},
		"6 s after it was gone":  {16 * second, 8, "a", false},
		"of equal priority":      {0, 7, "a", false},
		"of lower priority":      {0, 6, "a", false},
		"for a different node":   {0, 8, "b", false},
		"one of higher priority": {0, 9, "a", true},
		"already on a node":      {0, 10, "a", false},
		"of a pod that finishes": {0, 11, "a", false},
	} {
		h := newHistory(60*minute, nil)
		type event struct {
			at time.Duration
			do func(at time.Duration)
		}
		victim := func(change ...func(*corev1.Pod)) *corev1.Pod {
			return pod("victim", "a", "Running", append(change, func(p *corev1.Pod) { p.Spec.Priority = new(int32(7)) })...)
		}
		events := []event{
			{10 * minute, func(at time.Duration) { h.Pod(at, victim(deleting)) }},
			{10*minute + 9*second, func(at time.Duration) {
				if c.priority == 11 {
					h.Pod(at, victim(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
				}
			}},
			{10*minute + 10*second, func(at time.Duration) { h.PodGone(at, victim()) }},
			{10*minute + c.nominated, func(at time.Duration) {
				on := ""
				if c.priority == 10 {
					on = "b" // and its status still has the nomination
				}
				h.Pod(at, pod("high", on, "Pending", nominated(c.node, c.priority)))
			}},
		}
		slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
		h.Start(victim())
		for _, e := range events {
			e.do(e.at)
		}
		h.Finish()
		if got := h.Life("uid-victim").Preempted; got != c.want {
			t.Errorf("nominated %s: evicted %t, want %t", name, got, c.want)
		}
	}
}

// A pod that finishes in a recording that has no binding of it runs from its arrival on.
func TestAPodThatWasNeverSeenBoundRunsFromItsArrival(t *testing.T) {
	h := newHistory(60*minute, nil)
	h.Pod(2*minute, pod("p", "", "Pending"))
	h.PodGone(12*minute, pod("p", "", "Succeeded"))
	h.Finish()
	l := h.Life("uid-p")
	if end, ok := l.EndOf(20 * minute); l.IsBound || end != 30*minute || !ok {
		t.Errorf("%+v ends %s %t", l, end, ok)
	}
}

// The deletion of a pod may be reported when there is a new pod of its name.
func TestDeletionOfAnEarlierPodOfTheNameEndsNoOther(t *testing.T) {
	earlier := func(p *corev1.Pod) { p.UID = "earlier" }
	h := newHistory(60*minute, nil)
	h.Pod(1*minute, pod("p", "a", "Running", earlier))
	h.Pod(2*minute, pod("p", "a", "Running"))
	h.PodGone(3*minute, pod("p", "a", "Running", earlier))
	h.Finish()
	if l := h.Life("uid-p"); l.IsEnded || h.Current("n/p") != l {
		t.Errorf("the new pod: %+v", l)
	}
}
