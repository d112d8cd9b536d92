package loadaware

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// longestWait is the time after which the promise of an unbound pod is dropped. Permit holds a pod for at most
// 15 minutes, and the timeout for binding volumes is 10 minutes by default.
const longestWait = 30 * time.Minute

// promises are the expected loads of pods on the nodes that they were assigned to, as far as they are not
// measured yet. Without them, every pod of a burst would go to the node that was idle at the last measurement.
//
// A promise counts in full until the first sample after the pod was bound. The default queries average over a
// window, in which the pod's load gradually appears; the promise decreases accordingly, by the time of the
// samples and not by the clock: while Prometheus is unavailable, promises do not decrease.
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
	made    time.Time // when the pod was bound, or reserved if it is not bound
	bound   bool
	amounts []float64 // per metric: amount of the resource, or a fraction of full
	shares  []float64 // per metric: the fraction that is not measured yet, from 1 to 0
}

func newPromises(metrics []Metric, window, staleAfter time.Duration) *promises {
	return &promises{
		metrics: metrics, window: window, expiry: window + staleAfter,
		nodes: map[string]*nodePromises{}, pods: map[types.UID]string{},
	}
}

// make adds the promise of a pod to a node. It replaces an existing promise of the pod.
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

// keep records that a pod was bound: from now on its load is measured.
func (p *promises) keep(uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on := p.nodes[p.pods[uid]]; on != nil {
		if made := on.pods[uid]; made != nil {
			made.made, made.bound = now, true
		}
	}
}

// takeBack removes the promise of a pod.
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

// sum recomputes the sums instead of subtracting, to avoid rounding errors.
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

// settle decreases the promises of a metric that was measured at the given time.
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

// expire drops old promises when measurements are missing. By then, nodes are neutral.
func (p *promises) expire(now time.Time) {
	p.each(func(made *promise) (over bool) {
		age := now.Sub(made.made)
		return made.bound && age > p.expiry || age > longestWait+p.expiry
	})
}

// each calls visit for every promise, drops the promises for which it returns true, and recomputes
// the sums.
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

// share returns the promises to a node, as a fraction of full.
func (p *promises) share(metric int, node nodeInfo) float64 {
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
	offers := node.Allocatable()
	if offered := offers.Amount(m.Resource); offered > 0 {
		return amount / float64(offered)
	}
	return 0
}

// promised returns the expected load of a pod for each metric.
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

// request returns the scheduler's view of a pod's request: the sum of the containers or the largest init
// container, plus the overhead. Sidecars count as init containers, because not every release has them.
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
