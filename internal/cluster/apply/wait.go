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

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// WaitOptions define when a Deployment is stable. The zero value means the defaults.
type WaitOptions struct {
	StableFor          time.Duration      // how long it must be available without a change, by default 10 s
	Seen               int                // minimum number of observations in that time, by default 5
	Interval           time.Duration      // between two observations, by default 1 s, or StableFor / Seen if that is less
	PullGrace          time.Duration      // how long pulling an image may fail, by default 5 s
	UnschedulableGrace time.Duration      // how long a pod may be unschedulable, by default 30 s
	OnProgress         func(state string) // called when the state changes; may be nil
	// called at the end if replicas wait for nodes that are not ready or cordoned; may be nil
	OnMissing func(state string)
}

func (o WaitOptions) withDefaults() WaitOptions {
	o.StableFor = cmp.Or(o.StableFor, 10*time.Second)
	o.Seen = cmp.Or(o.Seen, 5)
	o.Interval = cmp.Or(o.Interval, min(time.Second, o.StableFor/time.Duration(o.Seen)))
	o.PullGrace = cmp.Or(o.PullGrace, 5*time.Second)
	o.UnschedulableGrace = cmp.Or(o.UnschedulableGrace, 30*time.Second)
	if o.OnProgress == nil {
		o.OnProgress = func(string) {}
	}
	return o
}

// waiter is the state between two observations.
type waiter struct {
	client    *Client
	key       client.ObjectKey
	options   WaitOptions
	firstSeen map[string]time.Time
	ignored   map[string]int32
	outages   int64

	last        *observation
	fingerprint string
	stableSince time.Time
	seen        int
	progress    string
}

// WaitStable waits until the Deployment ns/deployment is stable: available with its current
// template, without any change such as a restart, for o.StableFor and o.Seen observations. A pod
// that is ready for a moment and then exits is a failure.
//
// It returns a [*RolloutError] early if a container crashes, its image cannot be pulled or it does
// not start, if no node accepts the pod or the API server rejects it, if the deployment controller
// gives up, and if the controller manager does not act. Restarts do not count for a pod that is
// ready when the wait begins. On the host network, where each replica needs its own node, replicas
// may wait for nodes that are not ready or cordoned. At ctx's deadline it returns a RolloutError
// with [ReasonTimeout]; if ctx is cancelled, the context's error. The wait continues while the API
// server is unavailable. A scheduler that loses its lease then exits and is restarted by the
// kubelet, which does not count either.
func (c *Client) WaitStable(ctx context.Context, ns, deployment string, o WaitOptions) error {
	w := &waiter{
		client: c, key: client.ObjectKey{Namespace: ns, Name: deployment}, options: o.withDefaults(),
		firstSeen: map[string]time.Time{}, ignored: map[string]int32{}, outages: c.retry.Outages(),
	}
	controllers := &controllerWatch{client: c}
	for {
		s, err := w.observe(ctx)
		if err != nil {
			return w.stopped(ctx, err)
		}
		w.last = s
		v := evaluate(*s, w.options)
		if reason := controllers.idle(ctx, s.deployment.Status.ObservedGeneration < s.deployment.Generation); reason != "" {
			v = verdict{state: rolloutFailed, reason: ReasonControllersIdle, message: reason}
		}
		if v.state == rolloutFailed {
			return c.rolloutError(ctx, s, v)
		}
		if w.stable(s.now, v) {
			if v.missing && w.options.OnMissing != nil {
				w.options.OnMissing(v.message)
			}
			return nil
		}
		if err := clock.Sleep(ctx, w.options.Interval); err != nil {
			return w.stopped(ctx, err)
		}
	}
}

// observe reads the Deployment, its ReplicaSets and pods.
func (w *waiter) observe(ctx context.Context) (*observation, error) {
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
	w.ignoreRestarts(pods.Items)
	away, err := w.client.awayFor(ctx, d, currentPods(d, sets.Items, pods.Items))
	if err != nil {
		return nil, err
	}
	return &observation{
		now: time.Now(), deployment: d, replicaSets: sets.Items, pods: pods.Items,
		firstSeen: w.firstSeen, away: away, ignored: w.ignored,
	}, nil
}

// ignoreRestarts sets the container restarts that do not count. If a container is running and ready
// now, its restarts before the wait do not: they must not make a new deployment fail. After an API
// server outage each container may restart once more: a leader that cannot renew its lease exits.
func (w *waiter) ignoreRestarts(pods []corev1.Pod) {
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
				w.ignored[containerKey(&pods[i], c)] = c.RestartCount + 1
			case podstatus.Ready(&pods[i]) && c.State.Running != nil:
				w.ignored[containerKey(&pods[i], c)] = c.RestartCount
			}
		}
	}
}

// stable records an observation and reports whether the Deployment is stable.
func (w *waiter) stable(now time.Time, v verdict) bool {
	before := w.firstSeen
	w.firstSeen = make(map[string]time.Time, len(v.failures))
	for _, key := range v.failures {
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

// stopped returns the error of a wait that ended without a verdict.
func (w *waiter) stopped(ctx context.Context, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &RolloutError{Deployment: w.key.String(), Reason: ReasonGone, Message: "not found"}
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("wait for Deployment/%s: %w", w.key, err)
	case w.last == nil:
		return &RolloutError{Deployment: w.key.String(), Reason: ReasonTimeout,
			Message: "its state could not be read before the timeout", Err: err}
	}
	return w.client.rolloutError(ctx, w.last,
		verdict{reason: ReasonTimeout, message: "not stable before the timeout; last state: " + w.progress, err: err})
}
