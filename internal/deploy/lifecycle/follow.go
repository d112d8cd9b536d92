package lifecycle

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// follow prints all pods' logs until ctx ends, which is not an error, or until a log is forbidden
// or cannot be written.
func (p *printer) follow(ctx context.Context) error {
	streams, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() { cancel(nil); running.Wait() }()
	followed := map[string]bool{} // by UID
	for {
		pods, err := p.refresh(streams)
		if err != nil {
			return p.ended(ctx, streams, err)
		}
		for i := range pods {
			pod := &pods[i]
			if followed[string(pod.UID)] || !started(pod, p.Container) {
				continue
			}
			followed[string(pod.UID)] = true
			running.Add(1)
			go func() {
				defer running.Done()
				if err := p.followPod(streams, pod); err != nil {
					cancel(err)
				}
			}()
		}
		if err := clock.Sleep(streams, p.interval); err != nil {
			return p.ended(ctx, streams, err)
		}
	}
}

// ended returns why following ended: nil if the caller's context did.
func (p *printer) ended(ctx, streams context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller ends following that way
	}
	if streams.Err() != nil {
		return context.Cause(streams)
	}
	return err
}

// started reports whether a container has a log.
func started(pod *corev1.Pod, container string) bool {
	c := podstatus.StatusOf(pod, container)
	return c != nil && (c.State.Waiting == nil || c.RestartCount > 0)
}

// followPod prints a pod's log, including restarted containers, until the pod is gone or ctx ends.
// It returns an error if the log must not be read or cannot be written.
func (p *printer) followPod(ctx context.Context, pod *corev1.Pod) error {
	since, warned := p.since(), false
	for {
		last, err := p.stream(ctx, pod, since)
		since = last
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the caller ends following that way
		case err != nil && !readable(err):
			return err
		case err != nil && !warned:
			p.warn(err)
			warned = true
		}
		if clock.Sleep(ctx, p.interval) != nil || !p.exists(ctx, pod) {
			return nil //nolint:nilerr // the pod is gone, or the caller ends following
		}
	}
}

// exists reports whether a pod still exists, also if that is unknown.
func (p *printer) exists(ctx context.Context, pod *corev1.Pod) bool {
	found, err := p.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return found.UID == pod.UID
}

// readable reports whether a later attempt to read a log may succeed.
func readable(err error) bool {
	var forbidden *kubeapi.ForbiddenError
	var write *writeError
	return !errors.As(err, &forbidden) && !errors.As(err, &write)
}
