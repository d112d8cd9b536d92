package elasticquota

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// EventsToRegister returns the events that may make room in a quota or on a node. The plugin
// retries pods after a change of quotas.
func (p *ElasticQuota) EventsToRegister() []scheduler.ClusterEvent {
	return scheduler.RoomEvents(p.podHelps)
}

// podHelps reports whether another pod's change may help a pod that a quota or kept room rejected:
// the other pod left its node, or does not count in a min anymore although it is protected. Without
// preemption only pods of the same quota help. A PodDisruptionBudget that allows more evictions
// when a pod becomes ready does not: it is updated later than the pod.
func (p *ElasticQuota) podHelps(pod *corev1.Pod, before, after interface{}) bool {
	old, ok := before.(*corev1.Pod)
	if !ok {
		return true
	}
	q := p.quotas.of(pod.Namespace)
	if p.args.Preemption != PreemptionEvict && q != nil && q != p.quotas.of(old.Namespace) {
		return false
	}
	updated, ok := after.(*corev1.Pod)
	return !ok || scheduler.LeftNode(updated) || p.countsProtected(old) && !p.countsProtected(updated)
}

func (p *ElasticQuota) countsProtected(pod *corev1.Pod) bool {
	return p.protected(pod) && pod.DeletionTimestamp == nil
}

// reject remembers a pod and returns the status.
func (p *ElasticQuota) reject(pod *corev1.Pod, reason string) *scheduler.Status {
	p.rejected.Add(p.handle, pod)
	return scheduler.Unresolvable(reason)
}

// retryKept has pods retried when room is no longer kept, until ctx is done: the pod that it was
// kept for may have got another node. The scheduler reports a pending pod's deletion only from 1.33
// on, and not to pods with a higher priority (getLEPriorityPreCheck in eventhandlers.go).
func (p *ElasticQuota) retryKept(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.nominated.freed:
			p.rejected.Retry(ctx, p.handle, Name)
		}
	}
}
