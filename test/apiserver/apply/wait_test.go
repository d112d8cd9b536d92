//go:build linux

package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// quick keeps the proportions of the defaults and takes seconds.
var quick = apply.WaitOptions{
	StableFor: 2 * time.Second, Seen: 5, Interval: 100 * time.Millisecond, PullGrace: 300 * time.Millisecond,
	UnschedulableGrace: 300 * time.Millisecond,
}

// applied applies the objects of a scheduler and starts its rollout.
func applied(ctx context.Context, t *testing.T, client *apply.Client, name, node string) *rollout {
	t.Helper()
	ns := server.Namespace(t)
	if _, err := client.Apply(ctx, objects(t, name, ns, "a")); err != nil {
		t.Fatal(err)
	}
	return startRollout(ctx, t, ns, name, node)
}

func TestWaitStableReturnsWhenNothingHappensAnyMore(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), newClient(t, server.Config())
	r := applied(ctx, t, client, "stable", "")
	if err := r.status(ctx, false, running); err != nil {
		t.Fatal(err)
	}
	var seen []string
	options := quick
	options.OnProgress = func(state string) {
		seen = append(seen, state)
		if len(seen) == 1 {
			if err := r.status(ctx, true, running); err != nil {
				t.Error(err)
			}
		}
	}
	if err := client.WaitStable(ctx, r.ns, r.name, options); err != nil {
		t.Fatal(err)
	}
	want := []string{"Available: 0/1", "Deployment is available. Replicas: 1"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestWaitStableFailsWhenAPodFlashesReadyAndCrashes(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), newClient(t, server.Config())
	kubelet(ctx, t, "node-of-flash", "starting again\n", "starting\nno kind KubeSchedulerConfiguration is registered\n")
	r := applied(ctx, t, client, "flash", "node-of-flash")
	if err := errors.Join(r.status(ctx, true, running),
		r.event(ctx, "BackOff", "Back-off restarting failed container")); err != nil {
		t.Fatal(err)
	}
	options := quick
	options.OnProgress = func(state string) {
		if strings.Contains(state, "is available") {
			if err := r.status(ctx, true, crashed); err != nil {
				t.Error(err)
			}
		}
	}
	err := client.WaitStable(ctx, r.ns, r.name, options)
	want := strings.ReplaceAll(`Deployment/NS/flash failed (CrashLoopBackOff): container kube-scheduler of pod flash-1-x exited with code 1, restarted 1 time
  events:
    Warning BackOff: Back-off restarting failed container (3 times)
  log, pod flash-1-x, container kube-scheduler:
    starting again
  log of the previous run, pod flash-1-x, container kube-scheduler:
    starting
    no kind KubeSchedulerConfiguration is registered`, "NS", r.ns)
	var failed *apply.RolloutError
	if !errors.As(err, &failed) || failed.Hint() == "" {
		t.Fatalf("error is %v", err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestWaitStableDoesNotHoldOldRestartsAgainstAPodThatIsReady(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), newClient(t, server.Config())
	r := applied(ctx, t, client, "veteran", "")
	if err := r.status(ctx, true, crashed); err != nil {
		t.Fatal(err)
	}
	if err := client.WaitStable(ctx, r.ns, r.name, quick); err != nil {
		t.Error(err)
	}
	options := quick
	options.OnProgress = func(string) {
		again := crashed
		again.RestartCount++
		if err := r.status(ctx, true, again); err != nil {
			t.Error(err)
		}
	}
	err := client.WaitStable(ctx, r.ns, r.name, options)
	var failed *apply.RolloutError
	if !errors.As(err, &failed) || failed.Reason != apply.ReasonCrash {
		t.Errorf("after one more restart the error is %v", err)
	}
}

func TestWaitStableFailsEarlyWhenTheImageCannotBeHad(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), newClient(t, server.Config())
	r := applied(ctx, t, client, "unpulled", "")
	if err := r.status(ctx, false, notPulled); err != nil {
		t.Fatal(err)
	}
	err := client.WaitStable(ctx, r.ns, r.name, quick)
	want := "Deployment/" + r.ns +
		"/unpulled failed (ImagePullBackOff): image localhost/scheduler:1 of pod unpulled-1-x cannot be pulled: manifest " +
		"unknown"
	if err == nil || err.Error() != want {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, err.Error()))
	}
}

func TestWaitStableEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cfg := server.Config()
	cfg.QPS, cfg.Burst = 1, 1 // a rate limiter returns its own error near the deadline
	client := newClient(t, cfg)
	r := applied(testContext(t), t, client, "endless", "")
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		err := client.WaitStable(ctx, r.ns, r.name, quick)
		want := "Deployment/" + r.ns +
			"/endless failed (Timeout): not stable before the timeout; last state: the deployment controller has not observed " +
			"the change yet"
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		options := quick
		options.OnProgress = func(string) { cancel() }
		err := client.WaitStable(ctx, r.ns, r.name, options)
		var failed *apply.RolloutError
		if !errors.Is(err, context.Canceled) || errors.As(err, &failed) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("Deployment deleted", func(t *testing.T) {
		now, background := int64(0), metav1.DeletePropagationBackground
		err := server.Client(t).AppsV1().Deployments(r.ns).Delete(t.Context(), r.name,
			metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background})
		if err != nil {
			t.Fatal(err)
		}
		err = client.WaitStable(testContext(t), r.ns, r.name, quick)
		var failed *apply.RolloutError
		if !errors.As(err, &failed) || failed.Reason != apply.ReasonGone {
			t.Errorf("error is %v", err)
		}
	})
}
