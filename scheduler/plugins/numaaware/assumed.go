package numaaware

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// expiryInterval is the interval at which pods are forgotten that their node's topology does not
// show.
const expiryInterval = time.Second

// uncounted is a pod whose resources may be missing in its node's topology.
type uncounted struct {
	need amounts
	// started is the pod's resource version when the kubelet was seen to have accepted it, 0 before
	// that. A topology with a later one includes the pod: the API server numbers all objects in one
	// order.
	started uint64
	// included is set if a topology without a usable resource version has changed since then.
	included bool
}

// observe records a pod that has a node, and that its kubelet has accepted it. Pods that this
// process has not placed count too: those that were placed before the scheduler was restarted, and
// those of other schedulers.
func (p *NUMAAware) observe(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || scheduler.PodFinished(pod) {
		return
	}
	start, now := pod.Status.StartTime, p.now()
	if start == nil {
		p.add(pod)
		return
	}
	age := now.Sub(start.Time) // below zero if the clock of the node is ahead
	switch {
	case -p.settings.settle < age && age < p.settings.settle:
		p.add(pod)
	case len(p.assumed.OnNode(pod.Spec.NodeName)) == 0:
		return
	}
	// Not before a later event of the pod would add it again.
	expires := now.Add(p.settings.settle)
	if age < 0 {
		expires = expires.Add(p.settings.settle)
	}
	p.assumed.Update(pod.Spec.NodeName, func(assumed *scheduler.AssumedPod) bool {
		if assumed.UID == pod.UID && assumed.Expires.IsZero() {
			value, _ := assumed.Value.(uncounted)
			value.started = versionOf(pod.ResourceVersion)
			assumed.Value, assumed.Expires = value, expires
		}
		return true
	})
}

// add adds a pod that is not known yet and that needs resources of a zone.
func (p *NUMAAware) add(pod *corev1.Pod) {
	if _, known := p.assumed.Get(pod.UID); known {
		return
	}
	if n := needOf(pod); n != nil {
		p.assumed.Assume(scheduler.AssumedPod{UID: pod.UID, Node: pod.Spec.NodeName, Value: uncounted{need: n.all}})
	}
}

// versionOf returns a resource version as a number, 0 if it is none.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// forget removes a pod that was deleted or has finished.
func (p *NUMAAware) forget(pod *corev1.Pod) {
	p.assumed.Forget(pod.UID)
	p.rejected.Remove(pod.UID)
}

// includeStarted marks the pods of a node that had started when its topology changed, if resource
// versions cannot be compared.
func (p *NUMAAware) includeStarted(node string) {
	t := p.topologyOf(node)
	p.assumed.Update(node, func(pod *scheduler.AssumedPod) bool {
		if value, ok := pod.Value.(uncounted); ok && !pod.Expires.IsZero() &&
			(t == nil || t.version == 0 || value.started == 0) {
			value.included = true
			pod.Value = value
		}
		return true
	})
}

// expireEvery forgets pods whose time is over, and then has pods retried for which there is room
// now, until ctx is done.
func (p *NUMAAware) expireEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if p.expire() {
				p.rejected.Retry(ctx, p.handle, Name)
			}
		}
	}
}

// expire forgets pods whose time is over, and reports whether any still counted: its topology did
// not change, because the pod got nothing from a zone, or because the agent wrote it before the
// kubelet reported the pod's start.
func (p *NUMAAware) expire() (counted bool) {
	p.assumed.Update("", func(pod *scheduler.AssumedPod) bool {
		if !pod.Expired(p.now()) {
			return true
		}
		counted = counted || !p.topologyOf(pod.Node).includes(*pod)
		return false
	})
	return counted
}

// includes reports whether a topology shows a pod's resources.
func (t *topology) includes(pod scheduler.AssumedPod) bool {
	value, ok := pod.Value.(uncounted)
	return ok && (value.included || t != nil && value.started > 0 && t.version > value.started)
}

// missing returns the resources of a node's pods that its topology does not include yet, or nil if
// there are none.
func (p *NUMAAware) missing(node string) amounts {
	var sum amounts
	t, now := p.topologyOf(node), time.Time{}
	for _, pod := range p.assumed.OnNode(node) {
		if now.IsZero() {
			now = p.now()
		}
		if !pod.Expired(now) && !t.includes(pod) {
			sum = plus(sum, pod)
		}
	}
	return sum
}

// missingOf is like missing, without the pods that are not on the node anymore.
func (p *NUMAAware) missingOf(node scheduler.NodeInfo) amounts {
	var sum amounts
	t, now := p.topologyOf(node.Node().Name), p.now()
	for i := 0; i < node.PodCount(); i++ {
		pod, ok := p.assumed.Get(node.Pod(i).UID)
		if ok && pod.Node == node.Node().Name && !pod.Expired(now) && !t.includes(pod) {
			sum = plus(sum, pod)
		}
	}
	return sum
}

// plus returns the sum, which may be nil, with the amounts of a pod.
func plus(sum amounts, pod scheduler.AssumedPod) amounts {
	if sum == nil {
		sum = amounts{}
	}
	if value, ok := pod.Value.(uncounted); ok {
		sum.Add(value.need, 1)
	}
	return sum
}
