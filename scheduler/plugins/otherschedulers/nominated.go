package otherschedulers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const (
	// nominationTime is the time for which room is kept for a pod that is nominated for a node. A
	// scheduler that is lost does not take a nomination back.
	nominationTime = 5 * time.Minute
	// retryInterval is the interval at which pods are retried if room is not kept anymore.
	retryInterval = 5 * time.Second
)

// nominations are the pods without a node that a scheduler has nominated for one, by node.
type nominations struct {
	now   func() time.Time
	pods  scheduler.AssumedPods
	freed chan struct{}
}

// nomination is the value of a nominated pod.
type nomination struct {
	scheduler string
	priority  int32
	need      scheduler.Amounts
	ports     []scheduler.HostPort
}

func newNominations(now func() time.Time) *nominations {
	return &nominations{now: now, freed: make(chan struct{}, 1)}
}

// keeps reports whether room is kept from a pod: the nominated pod is of another scheduler, and its
// priority is not lower. The scheduler counts its own nominated pods so (addNominatedPods in
// pkg/scheduler/framework/runtime/framework.go).
func (n *nomination) keeps(pod *corev1.Pod) bool {
	return n.scheduler != pod.Spec.SchedulerName && n.priority >= scheduler.PodPriority(pod)
}

// observe records whether a pod is nominated.
func (n *nominations) observe(pod *corev1.Pod) {
	node := pod.Status.NominatedNodeName
	if node == "" || pod.Spec.NodeName != "" || scheduler.PodFinished(pod) {
		n.forget(pod.UID)
		return
	}
	expires := n.now().Add(nominationTime)
	if last, ok := n.pods.Get(pod.UID); ok {
		if last.Node == node {
			expires = last.Expires
		} else {
			n.signal()
		}
	}
	n.pods.Assume(scheduler.AssumedPod{UID: pod.UID, Node: node, Expires: expires, Value: &nomination{
		scheduler: pod.Spec.SchedulerName, priority: scheduler.PodPriority(pod), need: scheduler.PodRequests(pod),
		ports: scheduler.HostPorts(pod)}})
}

func (n *nominations) forget(pod types.UID) {
	if _, ok := n.pods.Get(pod); ok {
		n.pods.Forget(pod)
		n.signal()
	}
}

// expire forgets the pods whose time is over, until their nomination changes.
func (n *nominations) expire() {
	over := false
	n.pods.Update("", func(pod *scheduler.AssumedPod) bool {
		if pod.Value != nil && pod.Expired(n.now()) {
			// The entry stays, and keeps nothing: a new one would begin a new time.
			pod.Value, over = nil, true
		}
		return true
	})
	if over {
		n.signal()
	}
}

func (n *nominations) signal() {
	select {
	case n.freed <- struct{}{}:
	default:
	}
}

// seen observes a pod of the informer.
func (p *OtherSchedulers) seen(pod *corev1.Pod) {
	p.nominated.observe(pod)
	p.loops.observe(pod)
}

// gone observes a pod that was deleted.
func (p *OtherSchedulers) gone(pod *corev1.Pod) {
	p.nominated.forget(pod.UID)
	p.loops.forget(pod)
	p.rejected.Remove(pod.UID)
}

// retryKept has pods retried when room is not kept anymore, until ctx is done. The scheduler does
// not report changes of pending pods of other schedulers.
func (p *OtherSchedulers) retryKept(ctx context.Context) {
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.nominated.expire()
		case <-p.nominated.freed:
			p.rejected.Retry(ctx, p.handle, Name)
		}
	}
}

// EventsToRegister returns the events that may make room on a node.
func (p *OtherSchedulers) EventsToRegister() []scheduler.ClusterEvent {
	return scheduler.RoomEvents(func(_ *corev1.Pod, before, after interface{}) bool {
		_, ok := before.(*corev1.Pod)
		return !ok || scheduler.LeftNode(after)
	})
}
