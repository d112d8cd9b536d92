package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/clock"
	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// WaitOptions says how stable a Deployment must be. The zero value is good.
type WaitOptions struct {
	StableFor          time.Duration      // how long it must be available without any change; 0: 10 s
	Seen               int                // in how many looks, at least; 0: 5
	Interval           time.Duration      // between two looks; 0: 1 s
	PullGrace          time.Duration      // how long an image may fail to be pulled; 0: 5 s
	UnschedulableGrace time.Duration      // how long a pod may find no node; 0: 30 s
	OnProgress         func(state string) // told what is waited for whenever that changes; may be nil
}

func (o WaitOptions) withDefaults() WaitOptions {
	o.StableFor = cmp.Or(o.StableFor, 10*time.Second)
	o.Seen = cmp.Or(o.Seen, 5)
	o.Interval = cmp.Or(o.Interval, time.Second)
	o.PullGrace = cmp.Or(o.PullGrace, 5*time.Second)
	o.UnschedulableGrace = cmp.Or(o.UnschedulableGrace, 30*time.Second)
	if o.OnProgress == nil {
		o.OnProgress = func(string) {}
	}
	return o
}

// waiter is the memory between two looks.
type waiter struct {
	client    *Client
	key       client.ObjectKey
	options   WaitOptions
	firstSeen map[string]time.Time
	forgiven  map[string]int32
	outages   int64

	last        *snapshot
	fingerprint string
	stableSince time.Time
	seen        int
	progress    string
}

// WaitStable waits until the Deployment ns/deployment is available with its present template and nothing about it changes, restarts above all,
// for o.StableFor, seen o.Seen times. A pod that is ready for a moment and then ends is a failure.
//
// It ends early with a [*RolloutError] when a container crashes, its image cannot be had or it cannot be started, when no node takes the pod or the API server
// refuses it, and when the deployment controller gives up. Restarts of a pod that is ready when the wait begins do not count. The end of ctx is a RolloutError of [ReasonTimeout], or the context's error if
// it was cancelled. While the API server is away the wait goes on; a scheduler that loses its lease by that ends and is restarted by
// the kubelet, which is then not held against it.
func (c *Client) WaitStable(ctx context.Context, ns, deployment string, o WaitOptions) error {
	w := &waiter{
		client: c, key: client.ObjectKey{Namespace: ns, Name: deployment}, options: o.withDefaults(),
		firstSeen: map[string]time.Time{}, forgiven: map[string]int32{}, outages: c.retry.Outages(),
	}
	for {
		s, err := w.look(ctx)
		if err != nil {
			return w.ended(ctx, err)
		}
		w.last = s
		v := judge(*s, w.options)
		if v.state == rolloutFailed {
			return c.rolloutError(ctx, s, v)
		}
		if w.stable(s.now, v) {
			return nil
		}
		if err := clock.Sleep(ctx, w.options.Interval); err != nil {
			return w.ended(ctx, err)
		}
	}
}

// look reads the Deployment, its ReplicaSets and pods.
func (w *waiter) look(ctx context.Context) (*snapshot, error) {
	d := &appsv1.Deployment{}
	if err := w.client.api.Get(ctx, w.key, d); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read selector of Deployment/%s: %w", w.key, err)
	}
	within := []client.ListOption{client.InNamespace(w.key.Namespace), client.MatchingLabelsSelector{Selector: selector}}
	sets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
	if err := errors.Join(w.client.api.List(ctx, sets, within...), w.client.api.List(ctx, pods, within...)); err != nil {
		return nil, err
	}
	w.forgive(pods.Items)
	return &snapshot{
		now: time.Now(), deployment: d, replicaSets: sets.Items, pods: pods.Items,
		firstSeen: w.firstSeen, forgiven: w.forgiven,
	}, nil
}

// forgive says which ends of containers do not count. What has restarted before the wait began and runs and is ready now, belongs to an
// earlier time: deploying again what has long been there must not fail by it. And after an outage of the API server each container
// may end once more: a leader that cannot renew its lease must end.
func (w *waiter) forgive(pods []corev1.Pod) {
	outages := w.client.retry.Outages()
	first, outage := w.last == nil, outages != w.outages
	if !first && !outage {
		return
	}
	if outage {
		w.outages, w.seen = outages, 0
	}
	for i := range pods {
		for j := range pods[i].Status.ContainerStatuses {
			c := &pods[i].Status.ContainerStatuses[j]
			switch {
			case outage:
				w.forgiven[containerKey(&pods[i], c)] = c.RestartCount + 1
			case kubeapi.PodReady(&pods[i]) && c.State.Running != nil:
				w.forgiven[containerKey(&pods[i], c)] = c.RestartCount
			}
		}
	}
}

// stable takes note of a look and reports whether enough of them were the same.
func (w *waiter) stable(now time.Time, v verdict) bool {
	before := w.firstSeen
	w.firstSeen = make(map[string]time.Time, len(v.complaints))
	for _, key := range v.complaints {
		w.firstSeen[key] = now
		if since, ok := before[key]; ok {
			w.firstSeen[key] = since
		}
	}
	if v.message != w.progress {
		w.progress = v.message
		w.options.OnProgress(v.message)
		w.client.log.Debug("rollout", zap.String("deployment", w.key.String()), zap.String("state", v.message))
	}
	if v.state != rolloutAvailable {
		w.seen = 0
		return false
	}
	if w.seen == 0 || v.fingerprint != w.fingerprint {
		w.seen, w.stableSince, w.fingerprint = 0, now, v.fingerprint
	}
	w.seen++
	return w.seen >= w.options.Seen && now.Sub(w.stableSince) >= w.options.StableFor
}

// ended is the error of a wait that did not come to a verdict.
func (w *waiter) ended(ctx context.Context, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &RolloutError{Deployment: w.key.String(), Reason: ReasonGone, Message: "it is not there"}
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("wait for Deployment/%s: %w", w.key, err)
	case w.last == nil:
		return &RolloutError{Deployment: w.key.String(), Reason: ReasonTimeout, Message: "its state could not be read in time", Err: err}
	}
	return w.client.rolloutError(ctx, w.last, verdict{reason: ReasonTimeout, message: "not stable in time; last seen: " + w.progress, err: err})
}
