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

// podHelps reports whether a change of another pod may help a pod that a quota or kept room
// rejected: the other one left its node, or does not count in a min anymore although it is
// protected. Without preemption only pods of the same quota help. A PodDisruptionBudget that allows
// more evictions when a pod becomes ready does not: it is updated later than the pod.
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

// recount counts the pods of a quota as the informer's store has them, and reports whether one
// changed. An event makes the scheduler retry the pods that it may help, possibly before it has
// reached the plugin. The store is always updated first.
func (p *ElasticQuota) recount(q *quota) (changed bool) {
	if p.handle == nil {
		return false
	}
	store := p.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	for _, e := range p.usage.bound(q) {
		object, _, err := store.GetByKey(e.pod.Namespace + "/" + e.pod.Name)
		if err != nil {
			continue // a store never fails
		}
		switch now, ok := object.(*corev1.Pod); {
		case !ok || now.UID != e.pod.UID || scheduler.PodFinished(now):
			p.usage.remove(e.pod)
			changed = true
		case now != e.pod && now.Spec.NodeName != "":
			p.usage.put(now, true)
			changed = true
		}
	}
	return changed
}

// forget removes a pod that was deleted or has finished. If room was kept for it, it retries the
// pods that did not get that room. The scheduler reports the deletion of a pending pod from 1.33 on
// only, and not to pods of a higher priority (getLEPriorityPreCheck in eventhandlers.go).
func (p *ElasticQuota) forget(ctx context.Context, pod *corev1.Pod) {
	p.usage.remove(pod)
	p.rejected.Remove(pod.UID)
	if p.nominated.forget(pod.UID) {
		p.rejected.Retry(ctx, p.handle, Name)
	}
}
