package loadaware

import (
	"context"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// podsPerNode is the number of pods that are retried for each node whose load has fallen. The
// expected loads of the first ones may fill the node again, and each retry costs a request and a
// scheduling cycle.
const podsPerNode = 32

// rejections are the pods that Filter rejected on some node, and those nodes. The scheduler does
// not watch the load: without other events in the cluster it retries such a pod after five minutes
// only, up to 1.23 after one minute (flushUnschedulablePodsLeftover and flushUnschedulableQLeftover
// in scheduling_queue.go).
//
// Only Filter adds pods, and only the leader calls Filter, so other replicas retry nothing.
type rejections struct {
	mu    sync.RWMutex
	pods  map[types.UID]rejectedPod
	nodes map[string]int // the last round in which the node was rejected
	// round is incremented when pods are retried. A pod that is rejected again does not wait for
	// nodes of earlier rounds, because its last attempt did not fail there.
	round int
}

type rejectedPod struct {
	*corev1.Pod
	round int
}

func newRejections() *rejections {
	return &rejections{pods: map[types.UID]rejectedPod{}, nodes: map[string]int{}}
}

// add records that Filter rejected a node for a pod.
func (r *rejections) add(pod *corev1.Pod, node string) {
	r.mu.RLock()
	_, hasPod := r.pods[pod.UID]
	round, hasNode := r.nodes[node]
	recorded := hasPod && hasNode && round == r.round
	r.mu.RUnlock()
	if recorded {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, hasPod = r.pods[pod.UID]; !hasPod {
		r.pods[pod.UID] = rejectedPod{Pod: pod, round: r.round}
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

// prune removes the pods that are not pending anymore, and returns the nodes that the others wait
// for, with their rounds.
func (r *rejections) prune(pending func(*corev1.Pod) bool) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.round + 1
	for uid, p := range r.pods {
		if !pending(p.Pod) {
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
		if a, b := scheduler.PodPriority(pods[i].Pod), scheduler.PodPriority(pods[j].Pod); a != b {
			return a > b
		}
		return pods[i].CreationTimestamp.Before(&pods[j].CreationTimestamp)
	})
	if len(pods) > limit {
		pods = pods[:limit]
	}
	for _, p := range pods {
		delete(r.pods, p.UID)
	}
	return pods
}

// giveBack adds pods that take returned and that were not retried.
func (r *rejections) giveBack(pods []rejectedPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range pods {
		r.pods[p.UID] = p
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
		if !l.pending(p.Pod) {
			continue
		}
		if err := l.activate(ctx, p.Pod); err != nil {
			l.rejections.giveBack(pods[i:])
			if ctx.Err() == nil {
				log.Error(err, "LoadAware cannot retry pods; it tries again after the next query")
			}
			return
		}
	}
}

// listedNode is a node of the API server, with the methods of scheduler.NodeInfo that load needs.
type listedNode struct{ object *corev1.Node }

// Node returns the node's object.
func (n listedNode) Node() *corev1.Node { return n.object }

// Allocatable returns the resources that the node has for pods.
func (n listedNode) Allocatable() scheduler.Resources {
	return scheduler.NewResources(n.object.Status.Allocatable)
}
