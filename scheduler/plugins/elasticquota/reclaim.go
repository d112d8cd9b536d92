package elasticquota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// evictTime bounds the requests for one pod: the scheduler waits for them.
const evictTime = 10 * time.Second

// mostRefusals is the number of refused victims after which the plugin gives up for now.
const mostRefusals = 10

// Reasons for evictions, in events and metrics.
const (
	reasonReclaim  = "reclaim"
	reasonPriority = "priority"
)

// PostFilter evicts pods if no node has room for one that has a right to it.
func (p *ElasticQuota) PostFilter(ctx context.Context, state scheduler.State, pod *corev1.Pod,
	rejected scheduler.Rejections) (string, *scheduler.Status) {
	c := cycleOf(state)
	if c == nil || !p.canEvict(pod) {
		p.nominated.abandon(pod.UID)
		return "", scheduler.Unschedulable()
	}
	ctx, cancel := context.WithTimeout(ctx, evictTime)
	defer cancel()
	if node, victims, ok := p.nominated.get(pod.UID); ok {
		if p.isLeaving(ctx, victims) {
			return node, nil
		}
		p.nominated.fail(pod.UID, onlyRoomIsMissing(rejected.Status(node)))
	}
	if !p.nominated.mayEvict(pod.UID) {
		return "", scheduler.Unschedulable()
	}
	nodes, err := p.handle.Nodes().List()
	if err != nil {
		return "", scheduler.Error(err)
	}
	s := p.newSearch(pod, c)
	for refusals := 0; refusals < mostRefusals; refusals++ {
		best := s.best(nodes, rejected)
		if best == nil {
			return "", scheduler.Unschedulable()
		}
		refused, err := p.evict.tryAll(ctx, best.victims)
		if err != nil {
			return "", scheduler.Error(err)
		}
		if refused == nil {
			return p.carryOut(ctx, pod, c, best)
		}
		s.spared[refused.UID] = true
	}
	return "", scheduler.Unschedulable()
}

// isLeaving reports whether any of a pod's victims is still being deleted. Victims that are not are
// evicted again: an API server may accept an eviction that something else prevents later, or the
// informer has not seen the deletion yet.
func (p *ElasticQuota) isLeaving(ctx context.Context, victims []*corev1.Pod) (leaving bool) {
	for _, victim := range victims {
		now := p.usage.pod(victim.Namespace, victim.UID)
		switch {
		case now == nil: // it is gone
		case now.DeletionTimestamp != nil:
			leaving = true
		default:
			err := p.evict.evict(ctx, now)
			p.handle.Logger(ctx).Info(2, "ElasticQuota evicts a pod again", "victim", now.Namespace+"/"+now.Name, "err", err)
			leaving = leaving || err == nil
		}
	}
	return leaving
}

// carryOut evicts the victims and keeps the room of those that were evicted.
func (p *ElasticQuota) carryOut(ctx context.Context, pod *corev1.Pod, c *cycle,
	best *choice) (string, *scheduler.Status) {
	leaving := best.leaving
	for _, victim := range best.victims {
		if err := p.evict.evict(ctx, victim); err != nil {
			// Each eviction's dry run has passed, but a PodDisruptionBudget may allow only one of them. The
			// pod is retried, and evicts more when the other victims are gone.
			if len(leaving) > 0 {
				p.keepRoom(pod, best.node, c.need, leaving)
			}
			return "", scheduler.Error(err)
		}
		leaving = append(leaving, victim)
		p.report(ctx, pod, c, victim)
	}
	p.keepRoom(pod, best.node, c.need, leaving)
	return best.node, nil
}

// keepRoom keeps room for a pod unless it was deleted during the evictions: its deletion may have
// been handled before there was room to give up. The informer's store is updated first.
func (p *ElasticQuota) keepRoom(pod *corev1.Pod, node string, need amounts, victims []*corev1.Pod) {
	p.nominated.add(pod.UID, node, need, victims)
	if scheduler.PendingPod(p.handle, pod.Namespace, pod.Name, pod.UID) == nil {
		p.nominated.drop(pod.UID)
	}
}

// report counts and logs an eviction, and records an event of the victim.
func (p *ElasticQuota) report(ctx context.Context, pod *corev1.Pod, c *cycle, victim *corev1.Pod) {
	reason := reasonPriority
	if scheduler.PodPriority(victim) >= scheduler.PodPriority(pod) {
		reason = reasonReclaim
	}
	p.evictions.WithLabelValues(reason).Inc()
	p.handle.Logger(ctx).Info(2, "ElasticQuota evicts a pod", "victim", victim.Namespace+"/"+victim.Name, "node",
		victim.Spec.NodeName,
		"for", pod.Namespace+"/"+pod.Name, "quota", c.quota.name, "reason", reason)
	p.handle.EventRecorder().Eventf(victim, pod, corev1.EventTypeNormal, "Preempted", "Preempting",
		"Evicted (%s) for pod %s/%s of quota %s", reason, pod.Namespace, pod.Name, c.quota.name)
}

func (p *ElasticQuota) canEvict(pod *corev1.Pod) bool {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	return p.args.Preemption == PreemptionEvict && !never
}

// lowerInTeam reports whether the team has pods of lower priority with as much as is missing.
func (p *ElasticQuota) lowerInTeam(q *quota, pod *corev1.Pod, missing amounts) bool {
	freed := amounts{}
	for _, e := range p.usage.podsOf(q, p.protected) {
		if e.bound && !p.protected(e.pod) && scheduler.PodPriority(e.pod) < scheduler.PodPriority(pod) {
			freed.Add(e.need, 1)
		}
	}
	return len(freed.Missing(missing)) == 0
}
