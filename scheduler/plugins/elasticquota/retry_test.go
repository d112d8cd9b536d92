package elasticquota

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// protect, terminate, finish and makeReady change a copy of a pod.
func protect(pod *corev1.Pod) { pod.Labels = map[string]string{"pmk-sched.io/preemptible": "false"} }
func terminate(pod *corev1.Pod) {
	now := metav1.Now()
	pod.DeletionTimestamp = &now
}
func finish(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
func makeReady(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func changed(pod *corev1.Pod, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestOnlyRoomInAQuotaOrOnANodeRetriesAPod(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	pod := w.newPod("a", "new", "1", 0)
	own, same, other, none := w.newPod("a", "own", "1", 0), w.newPod("a2", "same", "1", 0), w.newPod("b", "other", "1", 0),
		w.newPod("none", "none", "1", 0)
	const deleted, updated = scheduler.ActionDelete, scheduler.ActionUpdate
	for name, c := range map[string]struct {
		action        scheduler.ActionType
		before, after interface{}
		evict, never  bool // whether it retries a pod with and without preemption
	}{
		"a pod of the namespace is deleted":   {deleted, own, nil, true, true},
		"a pod of the quota is deleted":       {deleted, same, nil, true, true},
		"a pod of another quota is deleted":   {deleted, other, nil, true, false},
		"a pod without a quota is deleted":    {deleted, none, nil, true, false},
		"something unknown is deleted":        {deleted, "?", nil, true, true},
		"a pod of the quota finishes":         {updated, same, changed(same, finish), true, true},
		"the status of a pod of the quota":    {updated, same, changed(same, makeReady), false, false},
		"the status of a pod without a quota": {updated, none, changed(none, makeReady), false, false},
		"its own status":                      {updated, pod, changed(pod, makeReady), false, false},
		"a pod of the quota is being deleted": {updated, same, changed(same, terminate), false, false},
		"a protected pod of it is being deleted": {updated, changed(same, protect),
			changed(same, protect, terminate), true, true},
		"a pod of the quota is not protected now":   {updated, changed(same, protect), same, true, true},
		"a pod of the quota is protected now":       {updated, same, changed(same, protect), false, false},
		"a pod of another quota is unprotected now": {updated, changed(other, protect), other, true, false},
	} {
		for preemption, want := range map[string]bool{PreemptionEvict: c.evict, PreemptionNever: c.never} {
			w.plugin.args.Preemption = preemption
			if got := plugintest.Retries(w.plugin, pod, scheduler.EventPod, c.action, c.before, c.after); got != want {
				t.Errorf("%s, preemption %s: %v, want %v", name, preemption, got, want)
			}
		}
	}
	if !plugintest.Retries(w.plugin, pod, scheduler.EventNode, scheduler.ActionAdd, nil, &corev1.Node{}) {
		t.Error("a new node does not retry a pod")
	}
}

// Whenever a pod is accepted because another one changed or is gone, the event of that one retries
// it.
func TestEveryChangeThatMakesRoomInAQuotaRetriesAPod(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404
	changes := map[string]func(*corev1.Pod){"terminate": terminate, "unprotect": func(p *corev1.Pod) { p.Labels = nil },
		"protect": protect, "ready": makeReady, "delete": nil}
	helped := map[string]int{}
	for i := range 4000 {
		w := newWorld(t, twoTeams+[]string{"", "preemption: Never\n"}[random.IntN(2)], 1)
		var all []*corev1.Pod
		for j := range 1 + random.IntN(6) {
			other := w.newPod([]string{"a", "a2", "b", "c"}[random.IntN(4)], fmt.Sprint("p", j),
				[]string{"1", "2", "4"}[random.IntN(3)], random.Int32N(2))
			if random.IntN(2) == 0 {
				protect(other)
			}
			other = bind(other)
			w.plugin.usage.observe(other)
			if err := w.store().Add(other); err != nil {
				t.Fatal(err)
			}
			all = append(all, other)
		}
		pod := w.newPod("a", "new", []string{"1", "3"}[random.IntN(2)], random.Int32N(2))
		if random.IntN(2) == 0 {
			protect(pod)
		}
		accepted := func() bool {
			_, status := w.plugin.PreFilter(t.Context(), plugintest.NewState(), pod)
			return status.IsSuccess()
		}
		if accepted() {
			continue
		}
		for what, change := range changes {
			before, action, after := all[0], scheduler.ActionDelete, interface{}(nil)
			var err error
			if change == nil {
				err = w.store().Delete(before)
			} else {
				action, after = scheduler.ActionUpdate, changed(before, change)
				err = w.store().Update(after)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.plugin.recount(w.plugin.quotas.of("a"))
			if accepted() {
				helped[what]++
				if !plugintest.Retries(w.plugin, pod, scheduler.EventPod, action, before, after) {
					t.Fatalf("%d: %s of %s/%s does not retry a pod", i, what, before.Namespace, before.Name)
				}
			}
			if err := w.store().Add(before); err != nil {
				t.Fatal(err)
			}
			w.plugin.usage.observe(before)
		}
	}
	for _, what := range []string{"terminate", "unprotect", "delete"} {
		if helped[what] < 50 {
			t.Errorf("%s made room only %d times", what, helped[what])
		}
	}
	if helped["ready"]+helped["protect"] > 0 {
		t.Errorf("a change that cannot help did: %v", helped)
	}
}

// bind returns a pod with a node.
func bind(pod *corev1.Pod) *corev1.Pod {
	return changed(pod, func(p *corev1.Pod) { p.Spec.NodeName = "n-0" })
}

// The event that makes a pod smaller, or begins its deletion, reaches the scheduler before the
// plugin.
func TestPodsCountAsTheInformerHasThem(t *testing.T) {
	smaller := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
	}
	for name, change := range map[string]func(*corev1.Pod){"resized": smaller, "terminating": terminate} {
		w := newWorld(t, twoTeams, 1)
		pod := w.newPod("a", "new", "500m", 0)
		if name == "resized" {
			w.run("n-0", "a", "a", 8, "1", 0) // max
		} else {
			w.run("n-0", "a", "a", 4, "1", 0, "pmk-sched.io/preemptible") // the protected pods fill min
			protect(pod)
		}
		preFilter := func() bool {
			_, status := w.plugin.PreFilter(t.Context(), plugintest.NewState(), pod)
			return status.IsSuccess()
		}
		if preFilter() {
			t.Fatalf("%s: there is room", name)
		}
		old := w.cluster.Nodes()[0].Pod(0)
		if err := w.store().Update(changed(old, change)); err != nil {
			t.Fatal(err)
		}
		if !preFilter() {
			t.Errorf("%s: the pod is rejected because of the old state", name)
		}
	}
}
