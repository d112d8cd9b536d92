package numaaware

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// assumed contains the pods whose resources may still be missing in the topology of their node.
type assumed struct {
	settle time.Duration
	now    func() time.Time

	mu    sync.Mutex
	nodes map[string]map[types.UID]*placed
}

// placed is a pod on a node. started is when the kubelet was seen to have accepted it, which gives it its zone.
type placed struct {
	need    amounts
	started time.Time
}

func newAssumed(settle time.Duration, now func() time.Time) *assumed {
	return &assumed{settle: settle, now: now, nodes: map[string]map[types.UID]*placed{}}
}

func (a *assumed) add(node string, pod types.UID, need amounts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes[node] == nil {
		a.nodes[node] = map[types.UID]*placed{}
	}
	a.nodes[node][pod] = &placed{need: need}
}

func (a *assumed) remove(node string, pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.nodes[node], pod)
	if len(a.nodes[node]) == 0 {
		delete(a.nodes, node)
	}
}

// observe records that the kubelet has accepted a pod.
func (a *assumed) observe(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.nodes[pod.Spec.NodeName][pod.UID]; p != nil && p.started.IsZero() && pod.Status.StartTime != nil {
		p.started = a.now()
	}
}

// updated forgets the pods of a node that its topology includes now: pods that had started when the
// topology was read.
func (a *assumed) updated(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid, p := range a.nodes[node] {
		if !p.started.IsZero() {
			delete(a.nodes[node], uid)
		}
	}
}

// of returns the resources of the pods of a node that its topology does not include yet, or nil if
// there are none.
func (a *assumed) of(node string) amounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sum amounts
	for uid, p := range a.nodes[node] {
		if !p.started.IsZero() && a.now().Sub(p.started) > a.settle {
			delete(a.nodes[node], uid) // the topology did not change, because the pod got nothing from a zone
			continue
		}
		if sum == nil {
			sum = amounts{}
		}
		sum.add(p.need)
	}
	return sum
}

// on is like of, without the pods that are not on the node anymore.
func (a *assumed) on(node scheduler.NodeInfo) amounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sum amounts
	for i := 0; i < node.PodCount(); i++ {
		p := a.nodes[node.Node().Name][node.Pod(i).UID]
		if p == nil {
			continue
		}
		if sum == nil {
			sum = amounts{}
		}
		sum.add(p.need)
	}
	return sum
}
