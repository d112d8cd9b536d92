package adapter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// eventful is a plugin that names events.
type eventful []scheduler.ClusterEvent

func (eventful) Name() string                                 { return "Eventful" }
func (e eventful) EventsToRegister() []scheduler.ClusterEvent { return e }

// retried reports whether a queue retries a pod that the plugin rejected: whether one of its hints
// for the event returns Queue.
func retried(t *testing.T, plugin eventful, event fwk.ClusterEvent, pod *corev1.Pod, before, after interface{}) bool {
	t.Helper()
	registered, err := (&EventsPoint{Plugin: plugin}).EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range registered {
		if !framework.MatchClusterEvents(e.Event, event) {
			continue
		}
		if e.QueueingHintFn == nil {
			return true
		}
		decision, err := e.QueueingHintFn(klog.Background(), pod, before, after)
		if err != nil {
			t.Fatal(err)
		}
		if decision == fwk.Queue {
			return true
		}
	}
	return false
}

func podOfTeam(name, team string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{"team": team}}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func TestHintsDecideWhatRetriesAPod(t *testing.T) {
	ofTeam := func(pod *corev1.Pod, before, _ interface{}) bool {
		deleted, ok := before.(*corev1.Pod)
		return !ok || deleted.Labels["team"] == pod.Labels["team"]
	}
	never := func(*corev1.Pod, interface{}, interface{}) bool { return false }
	deletes := eventful{{Resource: scheduler.EventPod, Action: scheduler.ActionDelete, Helps: ofTeam}}
	unhinted := eventful{{Resource: scheduler.EventPod, Action: scheduler.ActionDelete}}
	own := eventful{{Resource: scheduler.EventPod, Action: scheduler.ActionUpdate, Helps: never}}
	anything := eventful{{Resource: scheduler.EventAny, Action: scheduler.ActionAll, Helps: never}}
	everything := eventful{{Resource: scheduler.EventAny, Action: scheduler.ActionAll}}

	pod := podOfTeam("p", "red")
	annotated := podOfTeam("p", "red",
		func(p *corev1.Pod) { p.Annotations = map[string]string{scheduler.AnnotationActivated: "now"} })
	rejected := podOfTeam("p", "red", func(p *corev1.Pod) {
		p.ResourceVersion, p.Status.Conditions = "2", []corev1.PodCondition{{Type: corev1.PodScheduled, Message: "no"}}
	})
	red, blue, node := podOfTeam("r", "red"), podOfTeam("b", "blue"), &corev1.Node{}
	changed := func(resource fwk.EventResource, action fwk.ActionType) fwk.ClusterEvent {
		return fwk.ClusterEvent{Resource: resource, ActionType: action}
	}
	deleted, updated := changed(fwk.Pod, fwk.Delete), changed(fwk.Pod, fwk.Update)
	for name, c := range map[string]struct {
		plugin        eventful
		event         fwk.ClusterEvent
		before, after interface{}
		want          bool
	}{
		"the hint says yes":    {deletes, deleted, red, nil, true},
		"the hint says no":     {deletes, deleted, blue, nil, false},
		"no hint":              {unhinted, deleted, blue, nil, true},
		"no hint for anything": {everything, changed(fwk.Node, fwk.Add), nil, node, true},
		"another kind":         {deletes, changed(fwk.Node, fwk.Add), nil, node, false},
		"an object whose deletion was missed": {deletes, deleted, cache.DeletedFinalStateUnknown{Obj: blue}, nil,
			false},
		"an unknown object":                       {deletes, deleted, nil, nil, true},
		"an unknown object, and the hint says no": {own, updated, nil, nil, true},
		"something new, and the hint says no":     {anything, changed(fwk.Node, fwk.Add), nil, node, false},
		"something deleted, and the hint says no": {anything, changed(fwk.Node, fwk.Delete), node, nil, false},
		"its own labels, without naming updates": {deletes, changed(fwk.Pod, fwk.UpdatePodLabel),
			podOfTeam("p", "blue"), pod, true},
		"its own gates, without any event": {nil, changed(fwk.Pod, fwk.UpdatePodSchedulingGatesEliminated),
			podOfTeam("p", "red", gate), pod, true},
		"another pod's labels, without naming updates": {deletes, changed(fwk.Pod, fwk.UpdatePodLabel), blue,
			podOfTeam("b", "red"), false},
		"its own annotations, without naming updates":   {deletes, updated, pod, annotated, false},
		"its own annotations":                           {own, updated, pod, annotated, true},
		"its own annotations, among anything":           {anything, updated, pod, annotated, true},
		"its own status":                                {own, updated, pod, rejected, false},
		"another pod's annotations":                     {own, updated, blue, podOfTeam("b", "red"), false},
		"another pod needs less, which no hint can see": {own, changed(fwk.Pod, fwk.UpdatePodScaleDown), blue, blue, true},
		"another pod needs less, and updates are unnamed": {deletes, changed(fwk.Pod, fwk.UpdatePodScaleDown), blue, blue,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retried(t, c.plugin, c.event, pod, c.before, c.after); got != c.want {
				t.Errorf("retried: %v, want %v", got, c.want)
			}
		})
	}
}

// Updates of pods are named by these releases' own events, too, which no hint can replace.
func TestEventsAreRegisteredWithHints(t *testing.T) {
	never := func(*corev1.Pod, interface{}, interface{}) bool { return false }
	edits := fmt.Sprint("Pod ", podEdits, " hinted")
	of := func(resource scheduler.EventResource, action scheduler.ActionType,
		helps func(*corev1.Pod, interface{}, interface{}) bool) eventful {
		return eventful{{Resource: resource, Action: action, Helps: helps}}
	}
	for name, c := range map[string]struct {
		plugin eventful
		want   []string
	}{
		"none": {nil, []string{edits}},
		"deletions of pods": {of(scheduler.EventPod, scheduler.ActionDelete, nil),
			[]string{fmt.Sprint("Pod ", fwk.Delete), edits}},
		"updates of nodes": {of(scheduler.EventNode, scheduler.ActionUpdate, never),
			[]string{fmt.Sprint("Node ", fwk.Update, " hinted"), edits}},
		"updates of pods": {of(scheduler.EventPod, scheduler.ActionUpdate, nil), []string{fmt.Sprint("Pod ", fwk.Update)}},
		"updates with a hint": {of(scheduler.EventPod, scheduler.ActionUpdate, never),
			[]string{fmt.Sprint("Pod ", fwk.Update, " hinted"), fmt.Sprint("Pod ", fwk.UpdatePodScaleDown)}},
		"anything with a hint": {of(scheduler.EventAny, scheduler.ActionAll, never),
			[]string{fmt.Sprint("* ", fwk.All, " hinted"), fmt.Sprint("Pod ", fwk.UpdatePodScaleDown)}},
	} {
		registered, err := (&EventsPoint{Plugin: c.plugin}).EventsToRegister(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range registered {
			text := fmt.Sprint(e.Event.Resource, " ", e.Event.ActionType)
			if e.QueueingHintFn != nil {
				text += " hinted"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func gate(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }
