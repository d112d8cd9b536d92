package otherschedulers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// podOf returns a pod of a scheduler with a priority that requests CPU.
func podOf(name, of string, priority int32, cpu string) *corev1.Pod {
	pod := plugintest.NewPod("team", name, plugintest.Requests(cpu, "1Mi"))
	pod.Spec.SchedulerName, pod.Spec.Priority = of, &priority
	return pod
}

func withPort(pod *corev1.Pod, number int32) *corev1.Pod {
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number}}
	return pod
}

// nominated is a pod of the scheduler other that is nominated for the node n.
func nominated(priority int32, cpu string) *corev1.Pod {
	pod := podOf("nominated", "other", priority, cpu)
	pod.Status.NominatedNodeName = "n"
	return pod
}

// nodeOf returns the node n with 4 cores.
func nodeOf(pods ...*corev1.Pod) *plugintest.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Allocatable = plugintest.Requests("4", "1Gi")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	return plugintest.NewNode(node, pods...)
}

// start returns a plugin at a time that the test sets.
func start(a Arguments) (p *OtherSchedulers, h *plugintest.Handle, now *time.Time) {
	h, now = &plugintest.Handle{}, new(time.Time)
	*now = time.Unix(1000, 0)
	p = newPlugin(a, h, func() time.Time { return *now })
	p.heldBack = scheduler.NewMetrics(h.Metrics(), "test_").Counter("held_back_total", "")
	return p, h, now
}

// filter returns why the node is rejected in a cycle of the pod, or "". During the cycle the
// scheduler adds and removes pods.
func filter(t *testing.T, p *OtherSchedulers, pod *corev1.Pod, node *plugintest.Node,
	add, remove []*corev1.Pod) string {
	t.Helper()
	state := plugintest.NewState()
	if _, status := p.PreFilter(t.Context(), state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	state = state.Clone()
	for _, other := range add {
		p.AddPod(t.Context(), state, pod, other, node)
	}
	for _, other := range remove {
		p.RemovePod(t.Context(), state, pod, other, node)
	}
	if status := p.Filter(t.Context(), state, pod, node); !status.IsSuccess() {
		return strings.Join(status.Reasons(), "; ")
	}
	return ""
}

const (
	kept   = "room is kept for a pod that another scheduler has nominated"
	spared = "pods of other schedulers are not evicted"
)

func TestRoomIsKeptForNominatedPodsOfOtherSchedulers(t *testing.T) {
	with := func(change func(*corev1.Pod)) func() *corev1.Pod {
		return func() *corev1.Pod {
			pod := nominated(10, "3")
			change(pod)
			return pod
		}
	}
	for name, c := range map[string]struct {
		nominated func() *corev1.Pod
		want      string
	}{
		"a higher priority":    {with(func(*corev1.Pod) {}), kept},
		"the same priority":    {with(func(pod *corev1.Pod) { *pod.Spec.Priority = 5 }), kept},
		"a lower priority":     {with(func(pod *corev1.Pod) { *pod.Spec.Priority = 4 }), ""},
		"the same scheduler":   {with(func(pod *corev1.Pod) { pod.Spec.SchedulerName = "own" }), ""},
		"another node":         {with(func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "m" }), ""},
		"no nomination":        {with(func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "" }), ""},
		"bound":                {with(func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }), ""},
		"failed":               {with(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), ""},
		"room for both":        {func() *corev1.Pod { return nominated(10, "2") }, ""},
		"the port of the pod":  {func() *corev1.Pod { return withPort(nominated(10, "1"), 80) }, kept},
		"another port":         {func() *corev1.Pod { return withPort(nominated(10, "1"), 81) }, ""},
		"more than an integer": {func() *corev1.Pod { return nominated(10, "9000000000000000000") }, kept},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, now := start(Arguments{})
			pod, other := withPort(podOf("p", "own", 5, "2"), 80), c.nominated()
			p.seen(other)
			if got := filter(t, p, pod, nodeOf(), nil, nil); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			// The scheduler has counted the pods of its own profiles.
			if got := filter(t, p, pod, nodeOf(), []*corev1.Pod{other}, nil); got != "" {
				t.Errorf("added by the scheduler: %q", got)
			}
			*now = now.Add(4 * time.Minute)
			p.seen(other)
			if got := filter(t, p, pod, nodeOf(), nil, nil); got != c.want {
				t.Errorf("after 4 minutes: %q, want %q", got, c.want)
			}
			*now = now.Add(2 * time.Minute)
			p.seen(other)
			if got := filter(t, p, pod, nodeOf(), nil, nil); got != "" {
				t.Errorf("after 6 minutes: %q", got)
			}
		})
	}
}

func TestPodsAreRetriedWhenRoomIsNotKeptAnymore(t *testing.T) {
	for name, end := range map[string]func(p *OtherSchedulers, now *time.Time, pod *corev1.Pod){
		"deleted": func(p *OtherSchedulers, _ *time.Time, pod *corev1.Pod) { p.gone(pod) },
		"bound": func(p *OtherSchedulers, _ *time.Time, pod *corev1.Pod) {
			pod.Spec.NodeName = "m"
			p.seen(pod)
		},
		"another node": func(p *OtherSchedulers, _ *time.Time, pod *corev1.Pod) {
			pod.Status.NominatedNodeName = "m"
			p.seen(pod)
		},
		"after 6 minutes": func(p *OtherSchedulers, now *time.Time, _ *corev1.Pod) {
			*now = now.Add(6 * time.Minute)
			p.nominated.expire()
		},
	} {
		p, h, now := start(Arguments{})
		pod, other := podOf("p", "own", 5, "2"), nominated(10, "3")
		if err := h.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
			t.Fatal(err)
		}
		p.seen(other)
		if got := filter(t, p, pod, nodeOf(), nil, nil); got != kept {
			t.Fatal(got)
		}
		p.nominated.expire()
		select {
		case <-p.nominated.freed:
			t.Errorf("%s: the room is kept, and pods are retried", name)
		default:
		}
		go p.retryKept(t.Context())
		end(p, now, other.DeepCopy())
		h.AwaitActivated(t, "team/p")
	}
}

// The node has 4 cores and two pods of 2, one of them of another scheduler.
func TestPreemptionSparesPodsOfOtherSchedulers(t *testing.T) {
	own, foreign := podOf("a", "own", 0, "2"), podOf("b", "other", 0, "2")
	for name, c := range map[string]struct {
		cpu  string
		args Arguments
		want string
	}{
		"its own pods suffice":         {"2", Arguments{}, ""},
		"another one's pod is needed":  {"3", Arguments{}, spared},
		"victims of that scheduler":    {"3", Arguments{VictimsOf: []string{"other"}}, ""},
		"victims of every scheduler":   {"3", Arguments{VictimsOf: []string{Any}}, ""},
		"victims of another scheduler": {"3", Arguments{VictimsOf: []string{"third"}}, spared},
	} {
		p, _, _ := start(c.args)
		pod := podOf("p", "own", 5, c.cpu)
		if got := filter(t, p, pod, nodeOf(), nil, []*corev1.Pod{own, foreign}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		// Preemption puts the pods back that it need not evict.
		if got := filter(t, p, pod, nodeOf(foreign), nil, []*corev1.Pod{own}); c.cpu == "2" && got != "" {
			t.Errorf("%s: with the other pod: %q", name, got)
		}
	}
	p, _, _ := start(Arguments{})
	if got := filter(t, p, podOf("p", "own", 5, "3"), nodeOf(), nil, []*corev1.Pod{own}); got != "" {
		t.Errorf("only own pods: %q", got)
	}
	// The order of calls while preemption tries to keep pods.
	state, pod, node := plugintest.NewState(), podOf("p", "own", 5, "2"), nodeOf()
	p.PreFilter(t.Context(), state, pod)
	for _, other := range []*corev1.Pod{own, foreign} {
		p.RemovePod(t.Context(), state, pod, other, node)
	}
	p.AddPod(t.Context(), state, pod, own, node)
	if status := p.Filter(t.Context(), state, pod, nodeOf(own)); status.IsSuccess() {
		t.Error("the pod of the other scheduler would be the victim")
	}
	p.RemovePod(t.Context(), state, pod, own, node)
	p.AddPod(t.Context(), state, pod, foreign, node)
	if status := p.Filter(t.Context(), state, pod, nodeOf(foreign)); !status.IsSuccess() {
		t.Error(status)
	}
}

// The copy of a state for one node is not changed by another node.
func TestNodesDoNotShareTheirState(t *testing.T) {
	p, _, _ := start(Arguments{})
	state, pod := plugintest.NewState(), podOf("p", "own", 5, "3")
	p.PreFilter(t.Context(), state, pod)
	p.RemovePod(t.Context(), state, pod, podOf("a", "other", 0, "2"), nodeOf())
	other := state.Clone()
	p.RemovePod(t.Context(), other, pod, podOf("b", "other", 0, "2"), nodeOf())
	p.AddPod(t.Context(), other, pod, podOf("c", "own", 5, "2"), nodeOf())
	if c := cycleOf(state); len(c.removed) != 1 || len(c.added) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestArgumentsAndTheirErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                     "",
		`{victimsOf: ["*"]}`:   "",
		`{victimsOf: [""]}`:    "a name of a scheduler is empty",
		`{victims: [a]}`:       `"victims"`,
		`{victimsOf: default}`: "victimsOf",
	} {
		_, err := Rules(scheduler.NewArguments([]byte(args)))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %v", args, err)
		}
		p, err := New(t.Context(), scheduler.NewArguments([]byte(args)), &plugintest.Handle{})
		if (want == "") != (err == nil) || (p == nil) != (err != nil) {
			t.Errorf("New with %s: %v", args, err)
		}
	}
}

// An alert of `render monitoring` reads it.
func TestTheMetricExistsBeforeAPodIsHeldBack(t *testing.T) {
	h := &plugintest.Handle{}
	if _, err := New(t.Context(), scheduler.Arguments{}, h); err != nil {
		t.Fatal(err)
	}
	families, err := h.Registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "pmk_sched_otherschedulers_held_back_total" ||
		families[0].GetMetric()[0].GetCounter().GetValue() != 0 {
		t.Errorf("%v, %v", families, err)
	}
}

// A state of another plugin, or none, decides nothing.
func TestPodsWithoutAStatePass(t *testing.T) {
	p, _, _ := start(Arguments{})
	p.seen(nominated(10, "4"))
	state, pod := plugintest.NewState(), podOf("p", "own", 5, "3")
	p.AddPod(t.Context(), state, pod, pod, nodeOf())
	p.RemovePod(t.Context(), state, pod, pod, nodeOf())
	if status := p.Filter(t.Context(), state, pod, nodeOf()); !status.IsSuccess() {
		t.Error(status)
	}
}
