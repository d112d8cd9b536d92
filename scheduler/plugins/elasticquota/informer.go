package elasticquota

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// seed counts the pods that exist before the first one is scheduled: an informer's handlers may run
// later than the first cycle.
func (p *ElasticQuota) seed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seeded {
		return
	}
	p.seeded = true
	for _, object := range p.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().List() {
		if pod, ok := object.(*corev1.Pod); ok {
			p.usage.observe(pod)
		}
	}
}

// recount counts a quota's pods as the informer's store has them, and reports whether one changed.
// An event makes the scheduler retry the pods that it may help, possibly before it has reached the
// plugin. The store is always updated first.
func (p *ElasticQuota) recount(q *quota) (changed bool) {
	store := p.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	for _, e := range p.usage.bound(q) {
		object, _, _ := store.GetByKey(e.pod.Namespace + "/" + e.pod.Name) // a store never fails
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

// forget removes a pod that was deleted or has finished.
func (p *ElasticQuota) forget(pod *corev1.Pod) {
	p.usage.remove(pod)
	p.nominated.forget(pod.UID)
	p.rejected.Remove(pod.UID)
}
