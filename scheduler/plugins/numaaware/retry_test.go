package numaaware

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// inPhase returns a pod whose kubelet has written a status.
func inPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = phase, &now
	return pod
}

func TestOnlyPodsThatLeaveAZoneRetryAPod(t *testing.T) {
	p := newWorld(t, "", 1).plugin
	guaranteed := podOf("g", container("6", 0, true))
	burstable, devices := podOf("b", container("6", 0, false)), podOf("d", container("6", 1, false))
	terminating := guaranteed.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	relabeled := guaranteed.DeepCopy()
	relabeled.Labels = map[string]string{"team": "red"}
	const deleted, updated = scheduler.ActionDelete, scheduler.ActionUpdate
	for name, c := range map[string]struct {
		action        scheduler.ActionType
		before, after interface{}
		want          bool
	}{
		"a guaranteed pod is deleted":       {deleted, guaranteed, nil, true},
		"a pod with devices is deleted":     {deleted, devices, nil, true},
		"a pod that has no zone is deleted": {deleted, burstable, nil, false},
		"something unknown is deleted":      {deleted, "?", nil, true},
		"a guaranteed pod finishes":         {updated, guaranteed, inPhase(guaranteed, corev1.PodSucceeded), true},
		"a pod that has no zone finishes":   {updated, burstable, inPhase(burstable, corev1.PodFailed), false},
		"a status is written":               {updated, guaranteed, inPhase(guaranteed, corev1.PodRunning), false},
		"a pod is being deleted":            {updated, guaranteed, terminating, false},
		"labels change":                     {updated, guaranteed, relabeled, false},
	} {
		if got := plugintest.Retries(p, podOf("new", container("2", 0, true)), scheduler.EventPod, c.action, c.before,
			c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !plugintest.Retries(p, guaranteed, scheduler.EventNode, scheduler.ActionAdd, nil, &corev1.Node{}) {
		t.Error("a new node does not retry a pod")
	}
}

// Whenever a pod fits because another one is gone, the event of that one retries it.
func TestEveryPodWhoseZoneComesFreeRetriesAPod(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404
	freed := 0
	for i := range 3000 {
		w := newWorld(t, "", 1)
		w.show(topologyOf("n-0", "single-numa-node", []string{"pod", "container"}[random.IntN(2)], "6 16Gi 2", "4 16Gi 4"))
		randomPod := func(name string) *corev1.Pod {
			return podOf(name, container([]string{"1", "3", "6"}[random.IntN(3)], random.Int64N(3), random.IntN(2) == 0))
		}
		fits := func(pod *corev1.Pod) bool { return w.cluster.Schedule(t.Context(), w.plugin, pod).Node != "" }
		other, pod := randomPod("other"), randomPod("new")
		cycle := w.cluster.Schedule(t.Context(), w.plugin, other)
		if cycle.Node == "" {
			continue
		}
		w.plugin.Reserve(t.Context(), cycle.State, other, cycle.Node)
		w.cluster.Place(other, cycle.Node)
		if fits(pod) {
			continue
		}
		w.plugin.forget(other)
		if fits(pod) {
			freed++
			if !plugintest.Retries(w.plugin, pod, scheduler.EventPod, scheduler.ActionDelete, other, nil) {
				t.Fatalf("%d: the deletion of a pod with %v does not retry one with %v", i,
					other.Spec.Containers[0].Resources, pod.Spec.Containers[0].Resources)
			}
		}
	}
	if freed < 100 {
		t.Errorf("only %d deletions made room", freed)
	}
}
