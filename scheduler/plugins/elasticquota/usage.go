package elasticquota

import (
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// usage is the pods that take room, by namespace: pods with a node, and pods that the scheduler has
// reserved a node for.
type usage struct {
	mu         sync.Mutex
	namespaces map[string]*namespaceUsage
}

// namespaceUsage contains a namespace's pods and the sum of their requests.
type namespaceUsage struct {
	pods map[types.UID]entry
	used amounts
}

type entry struct {
	pod   *corev1.Pod
	need  amounts
	bound bool
}

func newUsage() *usage { return &usage{namespaces: map[string]*namespaceUsage{}} }

// observe records a pod as the API server has it.
func (u *usage) observe(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return // it may be reserved
	}
	if scheduler.PodFinished(pod) {
		u.remove(pod)
		return
	}
	u.put(pod, true)
}

// put records a pod that is bound, or for which a node was chosen.
func (u *usage) put(pod *corev1.Pod, bound bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.namespaces[pod.Namespace]
	if a == nil {
		a = &namespaceUsage{pods: map[types.UID]entry{}, used: amounts{}}
		u.namespaces[pod.Namespace] = a
	}
	e := entry{pod: pod, need: scheduler.PodRequests(pod), bound: bound || a.pods[pod.UID].bound}
	a.remove(pod.UID)
	a.pods[pod.UID] = e
	a.used.Add(e.need, 1)
}

// unreserve forgets a pod unless it is bound.
func (u *usage) unreserve(pod *corev1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.namespaces[pod.Namespace]; a != nil && !a.pods[pod.UID].bound {
		a.remove(pod.UID)
	}
}

func (u *usage) remove(pod *corev1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.namespaces[pod.Namespace]; a != nil {
		a.remove(pod.UID)
	}
}

func (a *namespaceUsage) remove(uid types.UID) {
	if _, ok := a.pods[uid]; ok {
		a.used = a.without(uid)
		delete(a.pods, uid)
	}
}

// without returns the sum of the pod requests except for one pod. A saturated sum is lower than its
// pods' requests, so nothing can be subtracted from it.
func (a *namespaceUsage) without(uid types.UID) amounts {
	if !a.used.Saturated() {
		sum := a.used.Clone()
		sum.Add(a.pods[uid].need, -1)
		return sum
	}
	sum := amounts{}
	for other, e := range a.pods {
		if other != uid {
			sum.Add(e.need, 1)
		}
	}
	return sum
}

// bound returns the pods of a quota that have a node.
func (u *usage) bound(q *quota) []entry {
	return u.entries(q, func(e entry) bool { return e.bound })
}

func (u *usage) entries(q *quota, selected func(entry) bool) []entry {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []entry
	for _, namespace := range q.namespaces {
		if a := u.namespaces[namespace]; a != nil {
			for _, e := range a.pods {
				if selected(e) {
					all = append(all, e)
				}
			}
		}
	}
	return all
}

// pod returns a pod in its last known state, or nil if it does not take room.
func (u *usage) pod(namespace string, uid types.UID) *corev1.Pod {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.namespaces[namespace]; a != nil {
		return a.pods[uid].pod
	}
	return nil
}

// used returns the usage by a quota's pods, except for one pod.
func (u *usage) used(q *quota, without *corev1.Pod) amounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := amounts{}
	for _, namespace := range q.namespaces {
		a := u.namespaces[namespace]
		if a == nil {
			continue
		}
		if without != nil && without.Namespace == namespace {
			sum.Add(a.without(without.UID), 1)
		} else {
			sum.Add(a.used, 1)
		}
	}
	return sum
}

// podsOf returns the pods of a quota that are not being deleted, in the order in which they have a
// right to its min: first protected pods, then by priority, then by age.
func (u *usage) podsOf(q *quota, protected func(*corev1.Pod) bool) []entry {
	all := u.entries(q, func(e entry) bool { return e.pod.DeletionTimestamp == nil })
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].pod, all[j].pod
		if protected(a) != protected(b) {
			return protected(a)
		}
		return before(a, b)
	})
	return all
}

// before orders pods by priority, then by age, then by UID.
func before(a, b *corev1.Pod) bool {
	if x, y := scheduler.PodPriority(a), scheduler.PodPriority(b); x != y {
		return x > y
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// guaranteed returns a quota's pods that fit into its min, by UID. The other pods borrow.
func (u *usage) guaranteed(q *quota, protected func(*corev1.Pod) bool) map[types.UID]bool {
	within, used := map[types.UID]bool{}, amounts{}
	for _, e := range u.podsOf(q, protected) {
		if !q.concerns(e.need) || q.guarantees(used, e.need) {
			within[e.pod.UID] = true
			used.Add(e.need, 1)
		}
	}
	return within
}
