package loadaware

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// longestWait is the time after which an unbound pod's expected load is dropped. Permit holds a pod
// for at most 15 minutes, and the timeout for binding volumes is 10 minutes by default.
const longestWait = 30 * time.Minute

// expectedLoads are the loads of assumed pods, as far as they are not measured yet. Without them,
// every pod of a burst would go to the node that was idle at the last measurement.
//
// An expected load counts in full until the first sample after the pod was bound. The default
// queries average over a window, in which the pod's load gradually appears; the expected load
// decreases accordingly, by the time of the samples and not by the clock: while Prometheus is
// unavailable, expected loads do not decrease.
type expectedLoads struct {
	metrics []Metric
	window  time.Duration
	expiry  time.Duration
	pods    scheduler.AssumedPods
}

// expectedLoad is an assumed pod's value.
type expectedLoad struct {
	bound   time.Time // zero if the pod is not bound
	amounts []float64 // per metric: amount of the resource, or a fraction of full
	shares  []float64 // per metric: the fraction that is not measured yet, from 1 to 0
}

func newExpectedLoads(metrics []Metric, window, staleAfter time.Duration) *expectedLoads {
	return &expectedLoads{metrics: metrics, window: window, expiry: window + staleAfter}
}

// add adds a pod's expected load to a node. It replaces an existing load for the pod.
func (e *expectedLoads) add(uid types.UID, node string, amounts []float64, now time.Time) {
	load := expectedLoad{amounts: amounts, shares: make([]float64, len(amounts))}
	for i := range load.shares {
		load.shares[i] = 1
	}
	e.pods.Assume(scheduler.AssumedPod{UID: uid, Node: node, Value: load, Expires: now.Add(longestWait + e.expiry)})
}

// bind records that a pod was bound: from now on its load is measured.
func (e *expectedLoads) bind(uid types.UID, node string, now time.Time) {
	e.pods.Update(node, func(pod *scheduler.AssumedPod) bool {
		if load, ok := pod.Value.(expectedLoad); ok && pod.UID == uid {
			load.bound = now
			pod.Value, pod.Expires = load, now.Add(e.expiry)
		}
		return true
	})
}

// decrease reduces the expected loads of a metric that was measured at the given time.
func (e *expectedLoads) decrease(metric int, measured time.Time) {
	e.pods.Update("", func(pod *scheduler.AssumedPod) bool {
		load, ok := pod.Value.(expectedLoad)
		if !ok || load.bound.IsZero() {
			return true
		}
		share := 1 - float64(measured.Sub(load.bound))/float64(e.window)
		if share < 0 {
			share = 0
		}
		if share < load.shares[metric] {
			load.shares = append([]float64(nil), load.shares...)
			load.shares[metric] = share
			pod.Value = load
		}
		for i, left := range load.shares {
			if left > 0 && load.amounts[i] > 0 {
				return true
			}
		}
		return false
	})
}

// onNode returns a node's expected load, as a fraction of full.
func (e *expectedLoads) onNode(metric int, node nodeInfo) float64 {
	amount := 0.0
	for _, pod := range e.pods.OnNode(node.Node().Name) {
		if load, ok := pod.Value.(expectedLoad); ok {
			amount += load.amounts[metric] * load.shares[metric]
		}
	}
	m := &e.metrics[metric]
	if amount <= 0 || m.Resource == "" {
		return amount
	}
	allocatable := node.Allocatable()
	if offered := allocatable.Amount(m.Resource); offered > 0 {
		return amount / float64(offered)
	}
	return 0
}

// expectedLoad returns the expected load of a pod for each metric.
func (s *settings) expectedLoad(pod *corev1.Pod) []float64 {
	amounts := make([]float64, len(s.Metrics))
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Resource == "" {
			amounts[i] = m.PodPercent / 100
			continue
		}
		amount := scheduler.PodRequest(pod, m.Resource)
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
