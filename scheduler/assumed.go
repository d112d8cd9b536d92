package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// AssumedPod is a pod that the scheduler has assigned to a node, or nominated for it, with the
// value that a plugin keeps for it.
type AssumedPod struct {
	UID  types.UID
	Node string
	// Value must not be modified, because callers of Get and OnNode share it. Update replaces it.
	Value interface{}
	// Expires is the time after which the pod is forgotten. The zero time means never.
	Expires time.Time
}

// Expired reports whether the pod's time is over.
func (p AssumedPod) Expired(now time.Time) bool { return !p.Expires.IsZero() && now.After(p.Expires) }

// AssumedPods are the pods that a plugin counts on a node although it does not see them there yet:
// their binding, their load or their devices appear later. A plugin calls Assume at Reserve. It
// calls Forget at Unreserve, when it sees the pod, and when the pod is deleted (see WatchPods).
//
// The zero value is ready to use.
type AssumedPods struct {
	mu   sync.RWMutex
	pods map[types.UID]AssumedPod
	// nodes maps node names to their pods, in Assume order. The lists are not modified, so that OnNode
	// callers read them without the lock.
	nodes map[string][]AssumedPod
}

// Assume adds a pod. It replaces an entry with the same UID.
func (a *AssumedPods) Assume(pod AssumedPod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods, a.nodes = map[types.UID]AssumedPod{}, map[string][]AssumedPod{}
	}
	a.forget(pod.UID)
	others := a.nodes[pod.Node]
	a.nodes[pod.Node] = append(others[:len(others):len(others)], pod)
	a.pods[pod.UID] = pod
}

// Forget removes a pod.
func (a *AssumedPods) Forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(uid)
}

// Get returns a pod, and whether it is assumed.
func (a *AssumedPods) Get(uid types.UID) (AssumedPod, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	pod, ok := a.pods[uid]
	return pod, ok
}

// OnNode returns a node's pods. The list must not be modified. OnNode does not allocate.
func (a *AssumedPods) OnNode(node string) []AssumedPod {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.nodes[node]
}

// Len returns the number of pods.
func (a *AssumedPods) Len() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.pods)
}

// Update calls change for each pod on a node, or on all nodes if node is empty. change may set
// Value and Expires; if it returns false, the pod is removed.
func (a *AssumedPods) Update(node string, change func(pod *AssumedPod) (keep bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if node != "" {
		a.update(node, change)
		return
	}
	for name := range a.nodes {
		a.update(name, change)
	}
}

// Expire removes the pods whose time is over.
func (a *AssumedPods) Expire(now time.Time) {
	a.Update("", func(pod *AssumedPod) bool { return !pod.Expired(now) })
}

func (a *AssumedPods) forget(uid types.UID) {
	if pod, ok := a.pods[uid]; ok {
		a.update(pod.Node, func(other *AssumedPod) bool { return other.UID != uid })
	}
}

func (a *AssumedPods) update(node string, change func(*AssumedPod) bool) {
	var kept []AssumedPod
	for i := range a.nodes[node] {
		pod := a.nodes[node][i]
		if !change(&pod) {
			delete(a.pods, pod.UID)
			continue
		}
		a.pods[pod.UID] = pod
		kept = append(kept, pod)
	}
	if kept == nil {
		delete(a.nodes, node)
		return
	}
	a.nodes[node] = kept
}
