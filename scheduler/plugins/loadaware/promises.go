package loadaware

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// longestWait is when a promise is dropped that was neither kept nor taken back; Permit holds no pod longer than 15 minutes
// and the binding of volumes takes 10 by default.
const longestWait = 30 * time.Minute

// promises are the loads that pods will bring to the nodes they were assigned to, and that are not, or only partly, measured yet.
// Without them every pod of a burst would go to the node that was idle at the last measurement.
//
// A promise counts in full until a sample was taken after the pod was bound. The default queries average over a window, in which
// the pod's load appears bit by bit; in the same measure the promise fades, by the time of the sample, not of the clock: while
// Prometheus is away, nothing fades.
type promises struct {
	metrics []Metric
	window  time.Duration
	expiry  time.Duration

	mu    sync.RWMutex
	nodes map[string]*nodePromises
	pods  map[types.UID]string
}

type nodePromises struct {
	sums []float64 // per metric
	pods map[types.UID]*promise
}

type promise struct {
	made    time.Time // when the pod was bound, or promised as long as it is not
	bound   bool
	amounts []float64 // per metric: milli-CPU, bytes or pieces of the resource, or a share of full
	shares  []float64 // per metric: what is not measured yet, from 1 down to 0
}

func newPromises(metrics []Metric, window, staleAfter time.Duration) *promises {
	return &promises{
		metrics: metrics, window: window, expiry: window + staleAfter,
		nodes: map[string]*nodePromises{}, pods: map[types.UID]string{},
	}
}

// make notes what a pod brings to a node. A pod that is promised already moves.
func (p *promises) make(uid types.UID, node string, amounts []float64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(uid)
	on := p.nodes[node]
	if on == nil {
		on = &nodePromises{sums: make([]float64, len(p.metrics)), pods: map[types.UID]*promise{}}
		p.nodes[node] = on
	}
	made := &promise{made: now, amounts: amounts, shares: make([]float64, len(amounts))}
	for i := range amounts {
		made.shares[i] = 1
		on.sums[i] += amounts[i]
	}
	on.pods[uid] = made
	p.pods[uid] = node
}

// keep notes that a pod was bound: from now on its load appears in what is measured.
func (p *promises) keep(uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on := p.nodes[p.pods[uid]]; on != nil {
		if made := on.pods[uid]; made != nil {
			made.made, made.bound = now, true
		}
	}
}

// takeBack forgets what a pod would have brought.
func (p *promises) takeBack(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(uid)
}

func (p *promises) forget(uid types.UID) {
	node, known := p.pods[uid]
	if !known {
		return
	}
	delete(p.pods, uid)
	on := p.nodes[node]
	delete(on.pods, uid)
	if len(on.pods) == 0 {
		delete(p.nodes, node)
		return
	}
	on.sum()
}

// sum adds up anew instead of subtracting, so that rounding leaves nothing behind.
func (n *nodePromises) sum() {
	for i := range n.sums {
		n.sums[i] = 0
	}
	for _, made := range n.pods {
		for i := range n.sums {
			n.sums[i] += made.amounts[i] * made.shares[i]
		}
	}
}

// settle lets the promises of one metric fade, which was measured at the given time.
func (p *promises) settle(metric int, measured time.Time) {
	p.each(func(made *promise) (over bool) {
		if !made.bound {
			return false
		}
		share := 1 - float64(measured.Sub(made.made))/float64(p.window)
		if share < made.shares[metric] {
			made.shares[metric] = share
		}
		if share < 0 {
			made.shares[metric] = 0
		}
		for i, left := range made.shares {
			if left > 0 && made.amounts[i] > 0 {
				return false
			}
		}
		return true
	})
}

// expire drops promises that no measurement will settle any more, because there is none: by then nodes are neutral anyway.
func (p *promises) expire(now time.Time) {
	p.each(func(made *promise) (over bool) {
		age := now.Sub(made.made)
		return made.bound && age > p.expiry || age > longestWait+p.expiry
	})
}

// each calls visit for every promise, drops those that are over, and adds up what is left.
func (p *promises) each(visit func(*promise) (over bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, on := range p.nodes {
		for uid, made := range on.pods {
			if visit(made) {
				delete(on.pods, uid)
				delete(p.pods, uid)
			}
		}
		if len(on.pods) == 0 {
			delete(p.nodes, node)
			continue
		}
		on.sum()
	}
}

// count returns the number of promises.
func (p *promises) count() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.pods)
}

// share returns what is promised to a node, as a share of full.
func (p *promises) share(metric int, node scheduler.NodeInfo) float64 {
	p.mu.RLock()
	on := p.nodes[node.Node().Name]
	if on == nil {
		p.mu.RUnlock()
		return 0
	}
	amount := on.sums[metric]
	p.mu.RUnlock()
	if amount <= 0 {
		return 0
	}
	m := &p.metrics[metric]
	if m.Resource == "" {
		return amount
	}
	if offered := quantity(node.Allocatable(), m.Resource); offered > 0 {
		return amount / float64(offered)
	}
	return 0
}

func quantity(r scheduler.Resources, name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.MilliCPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	}
	return r.Scalar[name]
}

// promised returns what a pod brings to each metric.
func (s *settings) promised(pod *corev1.Pod) []float64 {
	amounts := make([]float64, len(s.Metrics))
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Resource == "" {
			amounts[i] = m.PodPercent / 100
			continue
		}
		amount := request(pod, m.Resource)
		if amount == 0 {
			switch m.Resource {
			case corev1.ResourceCPU:
				amount = s.milliCPU
			case corev1.ResourceMemory:
				amount = s.memory
			}
		}
		amounts[i] = float64(amount)
	}
	return amounts
}

// request returns what the scheduler reckons with for a pod: the sum of the containers or the largest init container, and the
// overhead. Sidecars count as init containers, since not every release knows them.
func request(pod *corev1.Pod, name corev1.ResourceName) int64 {
	total := int64(0)
	for i := range pod.Spec.Containers {
		total += value(pod.Spec.Containers[i].Resources.Requests, name)
	}
	for i := range pod.Spec.InitContainers {
		if first := value(pod.Spec.InitContainers[i].Resources.Requests, name); first > total {
			total = first
		}
	}
	return total + value(pod.Spec.Overhead, name)
}

func value(list corev1.ResourceList, name corev1.ResourceName) int64 {
	q := list[name]
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
