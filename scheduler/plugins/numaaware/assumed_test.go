package numaaware

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fits reports whether a node with two zones of 8 cores has a zone for 4 more.
func (w *world) fits() bool {
	w.t.Helper()
	next := podOf("next", container("4", 0, true))
	return w.cluster.Schedule(context.Background(), w.plugin, next).Node != ""
}

// bound returns a pod with 6 cores that has a node. If started is not zero, its kubelet has
// accepted it.
func bound(name string, version int, started time.Time) *corev1.Pod {
	pod := podOf(name, container("6", 0, true))
	pod.Spec.NodeName, pod.ResourceVersion = "n-0", strconv.Itoa(version)
	if !started.IsZero() {
		start := metav1.NewTime(started)
		pod.Status.StartTime = &start
	}
	return pod
}

// at returns a topology with a resource version.
func at(version int, zones ...string) *unstructured.Unstructured {
	topology := topologyOf("n-0", "single-numa-node", "container", zones...)
	topology.SetResourceVersion(strconv.Itoa(version))
	return topology
}

// A scheduler that was restarted does not remember which pods it has placed.
func TestPodsThatAnEarlierSchedulerPlacedCount(t *testing.T) {
	for name, tc := range map[string]struct {
		started time.Duration // before now; 0: not yet
		version int           // of the topology
		want    bool
	}{
		"not started":                            {0, 9, false},
		"started after the topology":             {time.Second, 9, false},
		"started before the topology":            {time.Second, 11, true},
		"started long ago":                       {time.Hour, 9, true},
		"started a moment ahead of this clock":   {-time.Second, 9, false},
		"started on a node whose clock is wrong": {-time.Hour, 9, true},
	} {
		w := newWorld(t, "settle: 1m", 1)
		w.show(at(tc.version, "8 16Gi 4", "8 16Gi 4"))
		start := time.Time{}
		if tc.started != 0 {
			start = w.now.Add(-tc.started)
		}
		earlier := bound("earlier", 10, start)
		w.cluster.Place(earlier, "n-0")
		w.plugin.observe(earlier)
		if got := w.fits(); got != tc.want {
			t.Errorf("%s: the next pod fits: %t", name, got)
		}
	}
}

// Pods that have expired do not count, also if they have not been forgotten yet. The time of a pod
// is over after settle.
func TestPodsCountUntilTheyExpire(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want bool
	}{
		"at the end of the time":    {time.Minute, false},
		"after the end of the time": {time.Minute + 1, true},
	} {
		w := newWorld(t, "settle: 1m", 1)
		w.show(at(9, "8 16Gi 4", "8 16Gi 4"))
		for _, version := range []int{10, 8} { // the topology includes the second pod
			pod := bound(strconv.Itoa(version), version, w.now)
			w.cluster.Place(pod, "n-0")
			w.plugin.observe(pod)
		}
		w.advance(tc.age)
		if got := w.fits(); got != tc.want {
			t.Errorf("%s: the next pod fits: %t", name, got)
		}
		if missing := w.plugin.missing("n-0"); (len(missing) == 0) != tc.want {
			t.Errorf("%s: the topology lacks %v", name, missing)
		}
	}
}

// A topology includes the pods that had started before it was written, and has their resources only
// once.
func TestPodsThatATopologyIncludesDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		started int
		want    bool
	}{
		"started before the topology was written": {9, true},
		"started with the topology":               {10, false},
		"started after the topology was written":  {11, false},
	} {
		w := newWorld(t, "settle: 1m", 1)
		w.show(at(10, "8 16Gi 4", "8 16Gi 4"))
		pod := bound("p", tc.started, w.now)
		w.cluster.Place(pod, "n-0")
		w.plugin.observe(pod)
		if got := w.fits(); got != tc.want {
			t.Errorf("%s: the next pod fits: %t", name, got)
		}
		if missing := w.plugin.missing("n-0"); (len(missing) == 0) != tc.want {
			t.Errorf("%s: the topology lacks %v", name, missing)
		}
	}
}

// Pods without a node, and pods that have finished, take nothing from a zone.
func TestPodsWithoutResourcesOfANodeDoNotCount(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"without a node": func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"finished":       func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
	} {
		w := newWorld(t, "settle: 1m", 1)
		w.show(at(9, "8 16Gi 4", "8 16Gi 4"))
		pod := bound("p", 10, w.now)
		change(pod)
		w.plugin.observe(pod)
		if n := w.plugin.assumed.Len(); n != 0 {
			t.Errorf("%s: %d pods count", name, n)
		}
	}
}

// The events of pods and of topologies arrive in any order: the API server's versions decide.
func TestTheOrderOfWritesDecidesWhetherATopologyIncludesAPod(t *testing.T) {
	const before, after = 9, 11
	for name, tc := range map[string]struct {
		version      int
		startedFirst bool
		want         bool
	}{
		"written before the start, seen after": {before, true, false},
		"written before the start":             {before, false, false},
		"written after the start":              {after, true, true},
		"written after the start, seen before": {after, false, true},
	} {
		w := newWorld(t, "settle: 1m", 1)
		w.show(at(1, "8 16Gi 4", "8 16Gi 4"))
		pod := bound("p", 8, time.Time{})
		w.cluster.Place(pod, "n-0")
		w.plugin.observe(pod)
		if tc.startedFirst {
			w.plugin.observe(bound("p", 10, w.now))
		}
		w.show(at(tc.version, "2 10Gi 4", "8 16Gi 4"))
		if !tc.startedFirst {
			w.plugin.observe(bound("p", 10, w.now))
		}
		// Four cores are free in one zone in any case, and in none if the pod counts in both.
		if got := w.fits(); got != tc.want {
			t.Errorf("%s: the next pod fits: %t", name, got)
		}
	}
}

// An agent may write the topology before the kubelet reports the start of the pod.
func TestRejectedPodsAreRetriedWhenAPodNoLongerCounts(t *testing.T) {
	w := newWorld(t, "settle: 1m", 1)
	w.show(at(9, "2 10Gi 4", "8 16Gi 4"))
	started := bound("p", 10, w.now)
	w.cluster.Place(started, "n-0")
	w.plugin.observe(started)
	next := podOf("next", container("4", 0, true))
	w.pending(next)
	if cycle := w.cluster.Schedule(context.Background(), w.plugin, next); cycle.Node != "" {
		t.Fatal("the pod fits")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.plugin.expireEvery(ctx, time.Millisecond)
	w.advance(2 * time.Minute)
	w.handle.AwaitActivated(t, "default/next")
	if !w.fits() {
		t.Error("the pod does not fit")
	}
}

// A scheduler sees a new node before its topology.
func TestPodsAreRetriedWhenTheTopologyOfANewNodeIsKnown(t *testing.T) {
	w := newWorld(t, "unaligned: Reject", 1)
	next := podOf("next", container("4", 0, true))
	w.pending(next)
	if cycle := w.cluster.Schedule(context.Background(), w.plugin, next); cycle.Node != "" {
		t.Fatal("the pod fits")
	}
	w.show(at(1, "8 16Gi 4"))
	w.handle.AwaitActivated(t, "default/next")
}

// pending adds a pod to the scheduler's informer.
func (w *world) pending(pod *corev1.Pod) {
	w.t.Helper()
	if err := w.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore().Add(pod); err != nil {
		w.t.Fatal(err)
	}
}
