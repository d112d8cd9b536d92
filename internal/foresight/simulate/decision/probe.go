package decision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Objects that the pod owns, such as the claims for its ephemeral volumes, can be created only
// after it. The scheduler must not look at the pod before it has received them: it would refuse the
// pod, and not every plugin has it try again when they appear.
const (
	// firstSettleTime is the time for the scheduler to receive them.
	firstSettleTime = 100 * time.Millisecond
	// mostSettleTime is the time limit if a refusal names one of them, which may be the reason.
	mostSettleTime = 2 * time.Second
)

// probeOne makes the scheduler refuse the pod with a profile that never places it.
func (ob *observer) probeOne(ctx context.Context, r *simulate.Run, profile string) (*corev1.PodCondition, error) {
	owned, err := r.Owned(r.Waiting[0])
	if err != nil {
		return nil, err
	}
	for settle := firstSettleTime; ; settle *= 4 {
		condition, err := ob.tryOne(ctx, r, profile, settle)
		named := func(o scenario.Object) bool {
			_, name := scenario.NameOf(o.Fields)
			return strings.Contains(condition.Message, name)
		}
		if err != nil || settle > mostSettleTime/4 || !slices.ContainsFunc(owned, named) {
			return condition, err
		}
	}
}

// tryOne creates the pod for a profile, waits until the scheduler has refused it, and deletes it.
func (ob *observer) tryOne(ctx context.Context, r *simulate.Run, profile string,
	settle time.Duration) (*corev1.PodCondition, error) {
	w := r.Waiting[0]
	owned, err := r.Owned(w)
	if err != nil {
		return nil, err
	}
	pod, err := snapshot.Decode(w.Pod)
	if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", w.Key, err)
	}
	scenario.UseProfile(pod, nil, profile)
	if len(owned) > 0 && len(ob.nodes) > 0 {
		release, err := ob.hold(ctx, r)
		if err != nil {
			return nil, err
		}
		defer release()
		if err := ob.createHeld(ctx, r, pod, owned, settle); err != nil {
			return nil, err
		}
		release()
	} else if err := r.CreatePod(ctx, pod); err != nil {
		return nil, err
	}
	condition, err := ob.awaitRefusal(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, o := range owned {
		if err := r.Loader.Delete(ctx, o.Kind, o.Version, o.Fields); err != nil {
			return nil, err
		}
	}
	return condition, r.DeletePod(ctx, pod)
}

// createHeld creates the pod and the objects that it owns, and gives the scheduler time to receive
// them.
func (ob *observer) createHeld(ctx context.Context, r *simulate.Run, pod map[string]any, owned []scenario.Object,
	settle time.Duration) error {
	if err := r.CreatePod(ctx, pod); err != nil {
		return err
	}
	for _, o := range owned {
		if err := r.Loader.Create(ctx, o.Kind, o.Version, o.Fields); err != nil {
			return err
		}
	}
	return clock.Sleep(ctx, settle)
}

// hold makes the scheduler wait for the recorder's answer about another pod, until release is
// called. It schedules one pod after the other.
func (ob *observer) hold(ctx context.Context, r *simulate.Run) (release func(), err error) {
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": ob.namespace,
			"name": "pmk-sched-explain-hold"},
		"spec": map[string]any{
			"schedulerName": ob.probed.Unfiltered, "containers": []any{map[string]any{"name": "none", "image": "none"}},
		},
	}
	called, release := ob.recorder.Hold(ob.probed.Unfiltered)
	if err := r.CreatePod(ctx, scenario.MarkCreated(pod)); err != nil {
		release()
		return nil, err
	}
	select {
	case <-called:
		err = r.DeletePod(ctx, pod) // it is not tried again
	case <-r.Scheduler.Done():
		err = r.Scheduler.Ended()
	case <-ctx.Done():
		err = problem.Errorf("allow more with --timeout", "wait for the scheduler: %w", ctx.Err())
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}
