package coscheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestOnlyRoomAndPodsOfItsGroupRetryAPod(t *testing.T) {
	w := newWorld(t, "", 4)
	pod := newPod("a-0", "a", 3, 1)
	running := func(group string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := newPod("running", group, 3, 1)
		p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
		for _, c := range change {
			c(p)
		}
		return p
	}
	ready := func(p *corev1.Pod) {
		p.ResourceVersion, p.Status.Conditions = "2", []corev1.PodCondition{{Type: corev1.PodReady}}
	}
	larger := func(p *corev1.Pod) { p.Labels["pmk-sched.io/min-member"] = "4" }
	annotated := func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	rejected := pod.DeepCopy()
	rejected.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Message: "no"}}
	elsewhere := running("a", func(p *corev1.Pod) { p.Namespace = "other" })
	const added, deleted, updated = scheduler.ActionAdd, scheduler.ActionDelete, scheduler.ActionUpdate
	for name, c := range map[string]struct {
		action        scheduler.ActionType
		before, after interface{}
		want          bool
	}{
		"a pod without a group is deleted":         {deleted, running(""), nil, true},
		"a pod of another group is deleted":        {deleted, running("b"), nil, true},
		"something unknown is deleted":             {deleted, "?", nil, true},
		"a pod finishes":                           {updated, running(""), running("", finished), true},
		"the status of a pod without a group":      {updated, running(""), running("", ready), false},
		"the status of a pod of another group":     {updated, running("b"), running("b", ready), false},
		"the status of a pod of the group":         {updated, running("a"), running("a", ready), false},
		"its own status":                           {updated, pod, rejected, false},
		"a pod of the group is annotated":          {updated, running("a"), running("a", annotated), false},
		"a pod of the group is being deleted":      {updated, running("a"), running("a", terminating), true},
		"a pod of another group is being deleted":  {updated, running("b"), running("b", terminating), false},
		"the size of the group changes":            {updated, running("a"), running("a", larger), true},
		"the size of another group changes":        {updated, running("b"), running("b", larger), false},
		"a pod joins the group":                    {updated, running("b"), running("a"), true},
		"a pod leaves the group":                   {updated, running("a"), running(""), true},
		"another scheduler bound one of the group": {added, nil, running("a"), true},
		"a pod of another group is bound":          {added, nil, running("b"), false},
		"a pod of another namespace is bound":      {added, nil, elsewhere, false},
	} {
		if got := plugintest.Retries(w, pod, scheduler.EventPod, c.action, c.before, c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !plugintest.Retries(w, pod, scheduler.EventNode, scheduler.ActionUpdateNodeTaint, &corev1.Node{}, &corev1.Node{}) {
		t.Error("a change of a node's taints does not retry a pod")
	}
}
