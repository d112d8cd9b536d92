package loadaware

import (
	"context"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// podsPerNode is the number of pods that are retried for each node whose load has fallen. The
// expected loads of the first ones may fill the node again, and each retry costs a request and a
// scheduling cycle.
const podsPerNode = 32

// maxRejected is the maximum number of pods that are remembered. A pod that is not remembered waits
// for the scheduler's own retry.
const maxRejected = 10000

// findPending is scheduler.PendingPod with a handle.
type findPending func(namespace, name string, uid types.UID) *corev1.Pod

// rejections are the pods that Filter rejected on some node, and those nodes. The scheduler does
// not watch the load: without other events in the cluster it retries such a pod after five minutes
// only, up to 1.23 after one minute (flushUnschedulablePodsLeftover and flushUnschedulableQLeftover
// in scheduling_queue.go).
//
// Only Filter adds pods, and only the leader calls Filter, so other replicas retry nothing. Every
// client that reaches an extender without client certificates can have any pod rejected: only pods
// that are pending according to the informer are remembered, with the fields that a retry needs.
type rejections struct {
	mu    sync.RWMutex
	pods  map[types.UID]rejectedPod
	nodes map[string]int // the last round in which the node was rejected
	// round is incremented when pods are retried. A pod that is rejected again does not wait for
	// nodes of earlier rounds, because its last attempt did not fail there.
	round int
}

// rejectedPod is the part of a pod that a retry needs.
type rejectedPod struct {
	namespace, name string
	uid             types.UID
	priority        int32
	created         metav1.Time
	round           int
}

func newRejections() *rejections {
	return &rejections{pods: map[types.UID]rejectedPod{}, nodes: map[string]int{}}
}

// add records that Filter rejected a node for a pod, if the pod is pending.
func (r *rejections) add(pod *corev1.Pod, node string, pending findPending) {
	r.mu.RLock()
	_, hasPod := r.pods[pod.UID]
	round, hasNode := r.nodes[node]
	recorded := hasPod && hasNode && round == r.round
	r.mu.RUnlock()
	if recorded {
		return
	}
	p := pending(pod.Namespace, pod.Name, pod.UID)
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, hasPod = r.pods[p.UID]; !hasPod && len(r.pods) >= maxRejected {
		return
	} else if !hasPod {
		r.pods[p.UID] = rejectedPod{namespace: p.Namespace, name: p.Name, uid: p.UID, round: r.round,
			priority: scheduler.PodPriority(p), created: p.CreationTimestamp}
	}
	r.nodes[node] = r.round
}

// forget removes a pod that has a node.
func (r *rejections) forget(uid types.UID) {
	r.mu.RLock()
	_, recorded := r.pods[uid]
	r.mu.RUnlock()
	if !recorded {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

// prune removes the pods that are not pending anymore, and returns the nodes that the other pods
// wait for, with their rounds.
func (r *rejections) prune(pending findPending) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.round + 1
	for uid, p := range r.pods {
		if pending(p.namespace, p.name, uid) == nil {
			delete(r.pods, uid)
		} else if p.round < oldest {
			oldest = p.round
		}
	}
	nodes := map[string]int{}
	for name, round := range r.nodes {
		if round < oldest {
			delete(r.nodes, name)
		} else {
			nodes[name] = round
		}
	}
	return nodes
}

// take removes and returns pods that wait for nodes of a round, at most limit, in the order in
// which the scheduler takes them.
func (r *rejections) take(round, limit int) []rejectedPod {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
	var pods []rejectedPod
	for _, p := range r.pods {
		if p.round <= round {
			pods = append(pods, p)
		}
	}
	sort.Slice(pods, func(i, j int) bool {
		if a, b := pods[i].priority, pods[j].priority; a != b {
			return a > b
		}
		return pods[i].created.Before(&pods[j].created)
	})
	if len(pods) > limit {
		pods = pods[:limit]
	}
	for _, p := range pods {
		delete(r.pods, p.uid)
	}
	return pods
}

// giveBack adds pods that take returned and that were not retried.
func (r *rejections) giveBack(pods []rejectedPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range pods {
		r.pods[p.uid] = p
	}
}

// retryAfterQueries retries rejected pods after each query, until ctx is done. It runs in a
// separate goroutine, so that a slow API server does not delay queries.
func (l *LoadAware) retryAfterQueries(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.measured:
			l.retry(ctx)
		}
	}
}

// retry activates rejected pods if Filter would now accept nodes that it rejected for them. A pod
// is activated once, until Filter rejects it again.
func (l *LoadAware) retry(ctx context.Context) {
	rejected := l.rejections.prune(l.pending)
	if len(rejected) == 0 {
		return
	}
	nodes, _ := l.nodes()
	accepted, latest := 0, 0
	for _, node := range nodes {
		round, was := rejected[node.Name]
		if f, _, _ := l.findRejecting(listedNode{node}); !was || f != nil {
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
	pods := l.rejections.take(latest, accepted*podsPerNode)
	log := l.logs(ctx)
	log.Info(2, "LoadAware retries pods: the load of nodes that it rejected has fallen",
		"pods", len(pods), "nodes", accepted)
	for i, p := range pods {
		pod := l.pending(p.namespace, p.name, p.uid)
		if pod == nil {
			continue
		}
		if err := l.activate(ctx, pod); err != nil {
			l.rejections.giveBack(pods[i:])
			if ctx.Err() == nil {
				log.Error(err, "LoadAware cannot retry pods; it tries again after the next query")
			}
			return
		}
	}
}

// listedNode is a node from the API server, with the scheduler.NodeInfo methods that load needs.
type listedNode struct{ object *corev1.Node }

// Node returns the node's object.
func (n listedNode) Node() *corev1.Node { return n.object }

// Allocatable returns the resources that the node has for pods.
func (n listedNode) Allocatable() scheduler.Resources {
	return scheduler.NewResources(n.object.Status.Allocatable)
}
