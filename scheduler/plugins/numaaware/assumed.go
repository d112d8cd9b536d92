package numaaware

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// expireInterval is how often the plugin looks for pods whose time is over.
const expireInterval = 5 * time.Second

// observe records that the kubelet has accepted a pod.
func (p *NUMAAware) observe(pod *corev1.Pod) {
	if pod.Status.StartTime == nil || len(p.assumed.OnNode(pod.Spec.NodeName)) == 0 {
		return
	}
	p.assumed.Update(pod.Spec.NodeName, func(assumed *scheduler.AssumedPod) bool {
		if assumed.UID == pod.UID && assumed.Expires.IsZero() {
			assumed.Expires = p.now().Add(p.settings.settle)
		}
		return true
	})
}

// forget removes a pod that was deleted or has finished.
func (p *NUMAAware) forget(pod *corev1.Pod) {
	p.assumed.Forget(pod.UID)
	p.rejected.Remove(pod.UID)
}

// forgetStarted removes the pods of a node whose resources its topology includes now: pods that had
// started when the topology was read.
func (p *NUMAAware) forgetStarted(node string) {
	p.assumed.Update(node, func(pod *scheduler.AssumedPod) bool { return pod.Expires.IsZero() })
}

// expireEvery calls expire until ctx is done.
func (p *NUMAAware) expireEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.expire(ctx)
		}
	}
}

// expire removes the pods whose time is over: the topology did not change, because they got nothing
// from a zone. It retries rejected pods if there was one, because no event reports that room.
func (p *NUMAAware) expire(ctx context.Context) {
	now, expired := p.now(), false
	p.assumed.Update("", func(pod *scheduler.AssumedPod) bool {
		expired = expired || pod.Expired(now)
		return !pod.Expired(now)
	})
	if expired {
		p.rejected.Retry(ctx, p.handle, Name)
	}
}

// missing returns the resources of the pods of a node that its topology does not include yet, or
// nil if there are none.
func (p *NUMAAware) missing(node string) amounts {
	var sum amounts
	for _, pod := range p.assumed.OnNode(node) {
		if !pod.Expired(p.now()) {
			sum = plus(sum, pod)
		}
	}
	return sum
}

// missingOf is like missing, without the pods that are not on the node anymore.
func (p *NUMAAware) missingOf(node scheduler.NodeInfo) amounts {
	var sum amounts
	for i := 0; i < node.PodCount(); i++ {
		pod, ok := p.assumed.Get(node.Pod(i).UID)
		if ok && pod.Node == node.Node().Name && !pod.Expired(p.now()) {
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
	if need, ok := pod.Value.(amounts); ok {
		sum.Add(need, 1)
	}
	return sum
}
