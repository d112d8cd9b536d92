package elasticquota

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// retryKept has pods retried when room is no longer kept, until ctx is done: the pod that it was
// kept for may have got another node.
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

// seed counts the pods that exist before the first one is scheduled: the handlers of an informer
// may run later than the first cycle.
func (p *ElasticQuota) seed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seeded || p.handle == nil {
		return
	}
	p.seeded = true
	for _, object := range p.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().List() {
		if pod, ok := object.(*corev1.Pod); ok {
			p.usage.observe(pod)
		}
	}
}

// forgetGone forgets the pods of a quota that are gone, and reports whether there was one. The
// event that deletes a pod makes the scheduler retry the pods that its quota rejected, possibly
// before it has reached the plugin. The informer's store is always updated first.
func (p *ElasticQuota) forgetGone(q *quota) bool {
	if p.handle == nil {
		return false
	}
	store, gone := p.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer(), false
	for _, e := range p.usage.bound(q) {
		pod := e.pod
		object, _, err := store.GetByKey(pod.Namespace + "/" + pod.Name)
		if err != nil {
			continue // a store never fails
		}
		if now, ok := object.(*corev1.Pod); !ok || now.UID != pod.UID || scheduler.PodFinished(now) {
			p.usage.remove(pod)
			gone = true
		}
	}
	return gone
}

// forget removes a pod that was deleted or has finished.
func (p *ElasticQuota) forget(pod *corev1.Pod) {
	p.usage.remove(pod)
	p.nominated.forget(pod.UID)
	p.rejected.Remove(pod.UID)
}
