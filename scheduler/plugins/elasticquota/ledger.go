package elasticquota

import (
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// ledger contains the pods that take room, by namespace: pods with a node, and pods that the
// scheduler has reserved a node for.
type ledger struct {
	mu         sync.Mutex
	namespaces map[string]*account
}

// account is the pods of a namespace and the sum of their requests.
type account struct {
	pods map[types.UID]entry
	used amounts
}

type entry struct {
	pod   *corev1.Pod
	need  amounts
	bound bool
}

func newLedger() *ledger { return &ledger{namespaces: map[string]*account{}} }

// observe records a pod as the API server has it.
func (l *ledger) observe(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return // it may be reserved
	}
	if finished(pod) {
		l.remove(pod)
		return
	}
	l.put(pod, true)
}

// reserve records a pod for which a node was chosen.
func (l *ledger) reserve(pod *corev1.Pod) { l.put(pod, false) }

func (l *ledger) put(pod *corev1.Pod, bound bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.namespaces[pod.Namespace]
	if a == nil {
		a = &account{pods: map[types.UID]entry{}, used: amounts{}}
		l.namespaces[pod.Namespace] = a
	}
	old, known := a.pods[pod.UID]
	if known {
		a.used.add(old.need, -1)
	}
	e := entry{pod: pod, need: scheduler.PodRequests(pod), bound: bound || old.bound}
	a.pods[pod.UID] = e
	a.used.add(e.need, 1)
}

// unreserve forgets a pod unless it is bound.
func (l *ledger) unreserve(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.namespaces[pod.Namespace]; a != nil && !a.pods[pod.UID].bound {
		a.remove(pod.UID)
	}
}

// remove forgets a pod.
func (l *ledger) remove(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.namespaces[pod.Namespace]; a != nil {
		a.remove(pod.UID)
	}
}

func (a *account) remove(uid types.UID) {
	if e, ok := a.pods[uid]; ok {
		a.used.add(e.need, -1)
		delete(a.pods, uid)
	}
}

// finished reports whether a pod has succeeded or failed, so that it no longer takes room.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// bound returns the pods of a quota that have a node.
func (l *ledger) bound(q *quota) []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*corev1.Pod
	for _, namespace := range q.namespaces {
		if a := l.namespaces[namespace]; a != nil {
			for _, e := range a.pods {
				if e.bound {
					all = append(all, e.pod)
				}
			}
		}
	}
	return all
}

// has reports whether a pod takes room.
func (l *ledger) has(namespace string, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.namespaces[namespace]
	if a == nil {
		return false
	}
	_, ok := a.pods[uid]
	return ok
}

// used returns the usage of the pods of a quota, except for one pod.
func (l *ledger) used(q *quota, without *corev1.Pod) amounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := amounts{}
	for _, namespace := range q.namespaces {
		a := l.namespaces[namespace]
		if a == nil {
			continue
		}
		sum.add(a.used, 1)
		if without != nil && without.Namespace == namespace {
			sum.add(a.pods[without.UID].need, -1)
		}
	}
	return sum
}

// of returns the pods of a quota that are not being deleted, in the order in which they have a
// right to its min: first protected pods, then by priority, then by age.
func (l *ledger) of(q *quota, protected func(*corev1.Pod) bool) []entry {
	l.mu.Lock()
	var all []entry
	for _, namespace := range q.namespaces {
		if a := l.namespaces[namespace]; a != nil {
			for _, e := range a.pods {
				if e.pod.DeletionTimestamp == nil {
					all = append(all, e)
				}
			}
		}
	}
	l.mu.Unlock()
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
	if priority(a) != priority(b) {
		return priority(a) > priority(b)
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// guaranteed returns the pods of a quota that fit into its min, by UID. The others borrow.
func (l *ledger) guaranteed(q *quota, protected func(*corev1.Pod) bool) map[types.UID]bool {
	within, used := map[types.UID]bool{}, amounts{}
	for _, e := range l.of(q, protected) {
		if !q.concerns(e.need) || q.guarantees(used, e.need) {
			within[e.pod.UID] = true
			used.add(e.need, 1)
		}
	}
	return within
}
