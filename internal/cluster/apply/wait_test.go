package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// With a short stability window the minimum number of observations does not take longer than the
// window.
func TestObservationsFitIntoAShortStabilityWindow(t *testing.T) {
	for stableFor, want := range map[time.Duration]time.Duration{
		0: time.Second, 25 * time.Second: time.Second, time.Second: 200 * time.Millisecond,
	} {
		if got := (WaitOptions{StableFor: stableFor}).withDefaults().Interval; got != want {
			t.Errorf("stable for %s: an observation every %s, want every %s", stableFor, got, want)
		}
	}
}

// Restarts before the wait count only if the pod is not ready now; after an outage of the API
// server each container may restart once more.
func TestRestartsThatDoNotCount(t *testing.T) {
	ready, notReady := podOf("1", true, ended(3, 1)), podOf("2", false, ended(4, 1))
	waits := podOf("3", true, waiting("CrashLoopBackOff", ""))
	pods := []corev1.Pod{ready, notReady, waits}
	for name, c := range map[string]struct {
		last    *observation
		outages int64 // that were noticed before
		want    map[string]int32
	}{
		"the first look":            {nil, 0, map[string]int32{"p1/c": 3}},
		"another look":              {&observation{}, 0, map[string]int32{}},
		"after an outage":           {&observation{}, -1, map[string]int32{"p1/c": 4, "p2/c": 5, "p3/c": 1}},
		"an outage before it looks": {nil, -1, map[string]int32{"p1/c": 4, "p2/c": 5, "p3/c": 1}},
	} {
		w := &waiter{client: &Client{retry: &kubeapi.Retrier{}}, last: c.last, outages: c.outages, seen: 3,
			ignored: map[string]int32{}}
		w.ignoreRestarts(pods)
		if diff := cmp.Diff(c.want, w.ignored); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if begins := w.seen == 0; begins != (c.outages < 0) || w.outages != 0 {
			t.Errorf("%s: %d observations, %d outages", name, w.seen, w.outages)
		}
	}
}

// A failure counts from its first observation, unless it is gone in between.
func TestFailuresAreRememberedWithoutInterruption(t *testing.T) {
	w := &waiter{client: &Client{log: zap.NewNop()}, options: WaitOptions{}.withDefaults()}
	var states []string
	w.options.OnProgress = func(state string) { states = append(states, state) }
	for i, failures := range [][]string{{"a"}, {"a", "b"}, {"b"}, {"a", "b"}} {
		w.stable(start.Add(time.Duration(i)*time.Second), verdict{state: rolloutProgressing, failures: failures,
			message: fmt.Sprint(len(failures))})
	}
	want := map[string]time.Time{"a": start.Add(3 * time.Second), "b": start.Add(time.Second)}
	if diff := cmp.Diff(want, w.firstSeen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "1", "2"}, states); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	w.stable(start, verdict{state: rolloutProgressing, message: "2"})
	if len(states) != 4 {
		t.Errorf("the same state was reported twice: %q", states)
	}
}

func TestWhyAWaitStopped(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), start)
	defer cancel()
	cancelled, end := context.WithCancel(t.Context())
	end()
	w := &waiter{key: client.ObjectKey{Namespace: "a", Name: "d"}}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "d")
	for name, c := range map[string]struct {
		ctx          context.Context
		err          error
		reason, text string
	}{
		"deleted":   {t.Context(), gone, ReasonGone, "Deployment/a/d failed (Gone): not found"},
		"timeout":   {over, over.Err(), ReasonTimeout, "its state could not be read before the timeout"},
		"cancelled": {cancelled, cancelled.Err(), "", "wait for Deployment/a/d: context canceled"},
		"no answer": {t.Context(), errors.New("no answer"), "", "wait for Deployment/a/d: no answer"},
	} {
		err := w.stopped(c.ctx, c.err)
		var failed *RolloutError
		if errors.As(err, &failed) != (c.reason != "") || failed != nil && failed.Reason != c.reason ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
		if c.reason == "" && !errors.Is(err, c.err) {
			t.Errorf("%s: %v is not in %v", name, c.err, err)
		}
	}
}

func TestDeploymentIsBehindUntilItsLastChangeIsObserved(t *testing.T) {
	for observed, want := range map[int64]bool{0: true, 2: true, 3: false} {
		d := object("Deployment", nil)
		d.SetGeneration(3)
		d.Object["status"] = map[string]any{"observedGeneration": observed}
		if got := isBehind(d); got != want {
			t.Errorf("%d of 3: %t", observed, got)
		}
	}
}
