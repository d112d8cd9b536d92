//go:build linux && (cases || releases)

package plugins

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// loadPause is the time between two units of the other tenants, and loadLife how long a unit
	// runs.
	loadPause = 200 * time.Millisecond
	loadLife  = time.Second
	// mostUnits is how many units there are at a time. The nodes have room for all of them.
	mostUnits = 30
	// gangSize is the number of pods of every tenth unit, and unitLabel names the unit of a pod.
	gangSize  = 3
	unitLabel = "unit"
	// lost is more than any pod waits for its next attempt (podMaxBackoffSeconds is 10 s), and less
	// than the 5 minutes after which a scheduler, from 1.24 on, tries the pods again that no event has
	// woken (pkg/scheduler/internal/queue/scheduling_queue.go).
	lost = time.Minute
)

// load is the pods of the other tenants: single pods and gangs, which are created at a constant
// rate, unless too many of them wait, and deleted when they have run for a while.
type load struct {
	x *siege
	n int

	mu      sync.Mutex
	units   map[string]*unit // by namespace/name
	waits   map[string][]time.Duration
	evicted []string
}

// unit is a pod or a gang.
type unit struct {
	namespace, name, phase string
	size                   int
	created, placed        time.Time
	bound                  map[string]bool
	removed                bool
}

func newLoad(x *siege) *load {
	return &load{x: x, units: map[string]*unit{}, waits: map[string][]time.Duration{}}
}

// run creates units for a while.
func (l *load) run(t *testing.T, phase string, length time.Duration) {
	t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); {
		if l.count() < mostUnits {
			l.add(t, phase)
		}
		l.removeDone(t)
		if err := clock.Sleep(t.Context(), loadPause); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.units)
}

// add creates the next unit.
func (l *load) add(t *testing.T, phase string) {
	t.Helper()
	needs := []amounts{{"cpu": "100m", "memory": "100Mi"}, {gpuMilli: "300"}, {"cpu": "1", "memory": "1Gi"}, nil}
	l.n++
	u := &unit{namespace: []string{web, research, vision}[l.n%3], name: fmt.Sprint("u-", l.n), phase: phase, size: 1,
		bound: map[string]bool{}}
	if l.n%10 == 0 {
		u.size = gangSize
	}
	l.mu.Lock()
	l.units[u.namespace+"/"+u.name] = u
	l.mu.Unlock()
	for i := range u.size {
		pod := l.x.pod(fmt.Sprint(u.name, "-", i), needs[l.n/3%len(needs)])
		pod.Labels = map[string]string{unitLabel: u.name}
		if u.size > 1 {
			pod.Labels[groupLabel], pod.Labels[memberLabel] = u.name, strconv.Itoa(u.size)
		}
		l.x.Create(t.Context(), t, u.namespace, pod)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.created = time.Now(); !u.placed.IsZero() {
		l.measure(u)
	}
}

// measure records how long a unit waited, from the answer of the API server to its creation on. The
// caller holds l.mu.
func (l *load) measure(u *unit) {
	kind := fmt.Sprintf("%s, %d pods", u.phase, u.size)
	l.waits[kind] = append(l.waits[kind], max(0, u.placed.Sub(u.created)))
}

// removeDone deletes the units that have run long enough.
func (l *load) removeDone(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	var done []*unit
	for key, u := range l.units {
		switch {
		case u.removed && len(u.bound) == 0:
			delete(l.units, key)
		case !u.removed && !u.placed.IsZero() && time.Since(u.placed) > loadLife:
			u.removed = true
			done = append(done, u)
		}
	}
	l.mu.Unlock()
	for _, u := range done {
		for i := range u.size {
			err := l.x.Kube.CoreV1().Pods(u.namespace).Delete(t.Context(), fmt.Sprint(u.name, "-", i), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
}

// observe records pods that are bound, and pods that end although the load has not deleted them.
func (l *load) observe(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || pod.Labels[unitLabel] == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.units[pod.Namespace+"/"+pod.Labels[unitLabel]]
	if u == nil {
		return // another tenant has set the label
	}
	gone := event.Type == watch.Deleted || pod.DeletionTimestamp != nil
	if gone || pod.Status.Phase == corev1.PodFailed {
		if !u.removed {
			l.evicted = append(l.evicted, pod.Namespace+"/"+pod.Name)
		}
		delete(u.bound, pod.Name)
		return
	}
	u.bound[pod.Name] = true
	if len(u.bound) == u.size && u.placed.IsZero() {
		if u.placed = time.Now(); !u.created.IsZero() {
			l.measure(u)
		}
	}
}

// finish waits until all units are bound, and deletes them.
func (l *load) finish(t *testing.T) {
	t.Helper()
	run.Eventually(t, "all pods of the other tenants are bound", func(context.Context) (bool, string) {
		l.removeDone(t)
		waiting := l.waiting()
		return len(waiting) == 0, fmt.Sprint(waiting)
	})
}

// waiting returns the units that are not bound, with what the scheduler has against them.
func (l *load) waiting() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, u := range l.units {
		if u.placed.IsZero() {
			all = append(all, fmt.Sprintf("%s since %s", key, time.Since(u.created).Round(time.Second)))
		}
	}
	return all
}

// report logs how long units waited, and checks that none was lost by the queue, evicted, or
// rejected: the nodes have room for all of them at all times.
func (l *load) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, phase := range []string{"alone, 1 pods", "with hostile tenants, 1 pods", "alone, 3 pods",
		"with hostile tenants, 3 pods"} {
		waits := l.waits[phase]
		slices.Sort(waits)
		if len(waits) == 0 {
			t.Errorf("%s: no unit was bound", phase)
			continue
		}
		at := func(q float64) string { return waits[int(q*float64(len(waits)-1))].Round(time.Millisecond).String() }
		t.Logf("%s: %d units waited %s (median), %s (99 %%), %s (most)", phase, len(waits), at(0.5), at(0.99), at(1))
		if waits[len(waits)-1] >= lost {
			t.Errorf("%s: a unit waited %s", phase, waits[len(waits)-1])
		}
	}
	if len(l.evicted) > 0 {
		t.Errorf("pods of other tenants have ended: %v", l.evicted)
	}
	for _, namespace := range []string{web, research, vision} {
		for _, rejected := range l.x.Failures(t.Context(), t, namespace, "") {
			// The first pods of a gang are tried before the last one is created.
			if !strings.Contains(rejected, "pod group") {
				t.Errorf("a pod of %s was rejected: %s", namespace, rejected)
			}
		}
	}
}
