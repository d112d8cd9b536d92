package loadaware

import (
	"context"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// podsPerNode is the number of pods that are retried for each node whose load has fallen. The promises of the first ones may
// fill the node again, and each retry costs a request and a scheduling cycle.
const podsPerNode = 32

// held are the pods that Filter rejected on some node, and those nodes. The scheduler does not watch the load: without other
// events in the cluster it retries such a pod after five minutes only, up to 1.23 after one minute (flushUnschedulablePodsLeftover
// and flushUnschedulableQLeftover in scheduling_queue.go).
//
// Only Filter adds pods, and only the leader calls Filter, so other replicas retry nothing.
type held struct {
	mu    sync.RWMutex
	pods  map[types.UID]heldPod
	nodes map[string]int // the last round in which the node was rejected
	// round is incremented when pods are retried. A pod that is rejected again does not wait for nodes of earlier rounds,
	// because its last attempt did not fail there.
	round int
}

type heldPod struct {
	*corev1.Pod
	round int
}

func newHeld() *held {
	return &held{pods: map[types.UID]heldPod{}, nodes: map[string]int{}}
}

// add records that Filter rejected a node for a pod.
func (h *held) add(pod *corev1.Pod, node string) {
	h.mu.RLock()
	_, knownPod := h.pods[pod.UID]
	round, knownNode := h.nodes[node]
	known := knownPod && knownNode && round == h.round
	h.mu.RUnlock()
	if known {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, knownPod = h.pods[pod.UID]; !knownPod {
		h.pods[pod.UID] = heldPod{Pod: pod, round: h.round}
	}
	h.nodes[node] = h.round
}

// forget removes a pod that has a node.
func (h *held) forget(uid types.UID) {
	h.mu.RLock()
	_, known := h.pods[uid]
	h.mu.RUnlock()
	if !known {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pods, uid)
}

// rejected removes the pods that are not pending anymore, and returns the nodes that the others wait for, with their rounds.
func (h *held) rejected(pending func(*corev1.Pod) bool) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.round + 1
	for uid, p := range h.pods {
		if !pending(p.Pod) {
			delete(h.pods, uid)
		} else if p.round < oldest {
			oldest = p.round
		}
	}
	nodes := map[string]int{}
	for name, round := range h.nodes {
		if round < oldest {
			delete(h.nodes, name)
		} else {
			nodes[name] = round
		}
	}
	return nodes
}

// take removes and returns pods that wait for nodes of a round, at most limit, in the order in which the scheduler takes them.
func (h *held) take(round, limit int) []heldPod {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round++
	var pods []heldPod
	for _, p := range h.pods {
		if p.round <= round {
			pods = append(pods, p)
		}
	}
	sort.Slice(pods, func(i, j int) bool {
		if a, b := priority(pods[i].Pod), priority(pods[j].Pod); a != b {
			return a > b
		}
		return pods[i].CreationTimestamp.Before(&pods[j].CreationTimestamp)
	})
	if len(pods) > limit {
		pods = pods[:limit]
	}
	for _, p := range pods {
		delete(h.pods, p.UID)
	}
	return pods
}

// giveBack adds pods that take returned and that were not retried.
func (h *held) giveBack(pods []heldPod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range pods {
		h.pods[p.UID] = p
	}
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// retryHeld retries held pods after each query, until ctx is done. It runs in a separate goroutine, so that a slow API server does
// not delay queries.
func (l *LoadAware) retryHeld(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.measured:
			l.retry(ctx)
		}
	}
}

// retry activates held pods if Filter would now accept nodes that it rejected for them. A pod is activated once, until Filter
// rejects it again.
func (l *LoadAware) retry(ctx context.Context) {
	rejected := l.held.rejected(l.pending)
	if len(rejected) == 0 {
		return
	}
	nodes, _ := l.nodes()
	accepted, latest := 0, 0
	for _, node := range nodes {
		round, was := rejected[node.Name]
		if f, _, _ := l.rejecting(listed{node}); !was || f != nil {
			continue
		}
		accepted++
		if round > latest {
			latest = round
		}
	}
	if accepted == 0 {
		return
	}
	pods := l.held.take(latest, accepted*podsPerNode)
	log := l.logs(ctx)
	log.Info(2, "LoadAware retries pods: the load of nodes that it rejected has fallen", "pods", len(pods), "nodes", accepted)
	for i, p := range pods {
		if !l.pending(p.Pod) {
			continue
		}
		if err := l.activate(ctx, p.Pod); err != nil {
			l.held.giveBack(pods[i:])
			if ctx.Err() == nil {
				log.Error(err, "LoadAware cannot retry pods; it tries again after the next query")
			}
			return
		}
	}
}

// listed is a node of the API server, with the methods of scheduler.NodeInfo that load needs.
type listed struct{ object *corev1.Node }

// Node returns the node's object.
func (n listed) Node() *corev1.Node { return n.object }

// Allocatable returns the resources that the node has for pods.
func (n listed) Allocatable() scheduler.Resources {
	list := n.object.Status.Allocatable
	r := scheduler.Resources{Scalar: map[corev1.ResourceName]int64{}}
	for name := range list {
		switch amount := value(list, name); name {
		case corev1.ResourceCPU:
			r.MilliCPU = amount
		case corev1.ResourceMemory:
			r.Memory = amount
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = amount
		case corev1.ResourcePods:
			r.Pods = amount
		default:
			r.Scalar[name] = amount
		}
	}
	return r
}
