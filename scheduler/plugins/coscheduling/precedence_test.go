package coscheduling

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// createHolder creates a group of two pods, of which the scheduler never tries the second one: the
// first one waits for it with a node.
func (w *world) createHolder(claim int64) {
	w.t.Helper()
	w.createGang("holder", 2, 1)
	w.remove("holder-1")
	never := newPod("holder-1", "holder", 2, claim)
	w.create(never)
	w.pods[never.UID].state = placed // as if another plugin kept it out of the queue
}

// lengthen creates the PodGroup of a group, with a longer timeout than that of the arguments.
func (w *world) lengthen(group string) {
	w.t.Helper()
	w.groups = customresource.NewValues(readPodGroup, w.recounted)
	if err := w.groups.Set(&unstructured.Unstructured{Object: map[string]interface{}{
		"metadata": map[string]interface{}{"namespace": "shop", "name": group},
		"spec":     map[string]interface{}{"minMember": int64(2), "scheduleTimeoutSeconds": int64(840)},
	}}); err != nil {
		w.t.Fatal(err)
	}
}

// A group of which a pod names another scheduler cannot be placed by this one, and keeps no other
// group from its room.
func TestPodsOfOtherSchedulersDoNotCount(t *testing.T) {
	w := newWorld(t, "", 4)
	w.createHolder(3)
	w.pods["shop/holder-1"].Spec.SchedulerName = "other"
	w.run(soon, nil)
	if n := w.countPods("holder", waiting); n > 0 {
		t.Errorf("a pod of the group keeps a node:\n%s", w)
	}
	w.createGang("a", 2, 2)
	w.run(soon, func() bool { return w.countPods("a", placed) == 2 })
}

// The timeout of a PodGroup, which a user sets, is how long its own pods wait. Other groups leave
// room for them as long as the arguments say.
func TestOtherGroupsDoNotWaitForTheTimeoutOfAPodGroup(t *testing.T) {
	const args = `{"timeout": "5s"}`
	t.Run("it claims the free room", func(t *testing.T) {
		w := newWorld(t, args, 4)
		w.lengthen("holder")
		w.createHolder(3)
		w.run(soon, func() bool { return w.countPods("holder", waiting) == 1 })
		w.createGang("a", 2, 1)
		w.run(time.Second, nil)
		if n := w.countPods("a", placed); n > 0 {
			t.Errorf("%d pods took the room that the first group needs", n)
		}
		w.run(soon, func() bool { return w.countPods("a", placed) == 2 })
		if n := w.countPods("holder", waiting); n != 1 {
			t.Errorf("the pod of the first group does not wait anymore:\n%s", w)
		}
	})
	t.Run("another group got in its way", func(t *testing.T) {
		w := newWorld(t, args, 2, 2)
		w.lengthen("holder")
		w.createHolder(0)
		w.run(soon, func() bool { return w.countPods("holder", waiting) == 1 })
		unfitting := newPod("unfitting", "unfitting", 1, 1)
		unfitting.Annotations = map[string]string{rejected: "for now"}
		w.create(unfitting)
		w.run(2*time.Second, nil)
		w.createGang("a", 1, 1)
		w.run(time.Second, nil)
		if got := w.String(); w.first == nil || !strings.Contains(w.first.key, "holder") {
			t.Errorf("the others do not make room for the first group:\n%s", got)
		}
		w.run(soon, func() bool { return w.countPods("a", placed) == 1 })
	})
}

// A group whose pod needs a volume that no node reaches gains nothing when others give up their
// nodes, although it is older.
func TestGroupsThatAreNotInTheWayKeepTheirNodes(t *testing.T) {
	w := newWorld(t, "", 4, 4)
	w.createGang("nowhere", 2, 1)
	older := []*simulated{w.pods["shop/nowhere-0"], w.pods["shop/nowhere-1"]}
	older[1].Annotations = map[string]string{rejected: "for good"}
	for _, p := range older {
		p.state = placed // it is not tried yet
	}
	w.run(time.Second, nil)
	w.createHolder(1)
	w.run(soon, func() bool { return w.countPods("holder", waiting) == 1 })
	for _, p := range older {
		p.state = queued
	}
	w.run(soon, func() bool { return w.attempts(resultUnplaced)+w.attempts(resultYielded) > 0 })
	if n := w.attempts(resultYielded); n > 0 || w.countPods("holder", waiting) != 1 {
		t.Errorf("groups made room for others %v times:\n%s", n, w)
	}
}
