package coscheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// fail ends an attempt and begins a back-off. It returns the pods that have to give up their nodes.
func (c *Coscheduling) fail(ctx context.Context, g *gang, result string) []*corev1.Pod {
	g.failures++
	delay := c.settings.backoff(g.failures)
	g.until = c.now().Add(delay)
	c.attempts.WithLabelValues(result).Inc()
	c.handle.Logger(ctx).Info(2, "Coscheduling could not place a pod group", "podGroup", g.key, "result", result,
		"failures", g.failures, "backoff", delay)
	return c.release(g)
}

// yield ends an attempt in favor of another group.
func (c *Coscheduling) yield(ctx context.Context, g *gang) []*corev1.Pod {
	g.queued = true
	c.attempts.WithLabelValues(resultYielded).Inc()
	c.handle.Logger(ctx).Info(2, "Coscheduling makes room for another pod group", "podGroup", g.key, "for", c.first.key)
	return c.release(g)
}

// release returns the pods of a group that have to give up their nodes.
func (c *Coscheduling) release(g *gang) []*corev1.Pod {
	waiting := g.waiting()
	g.assembling, g.releasing = false, len(waiting) > 0
	if c.first == g {
		c.first = nil
	}
	if !g.releasing {
		c.released()
	}
	return waiting
}

// gaveUp records that a pod has given up its node. It takes the lock.
func (c *Coscheduling) gaveUp(key string, pod *corev1.Pod) {
	c.lock()
	defer c.mu.Unlock()
	g, now := c.gang(key), c.now()
	s := g.state(pod)
	passed := s.allowed
	s.reserved, s.allowed = false, false
	if passed {
		return // it could not be bound, and the scheduler retries it
	}
	s.hold(now)
	switch {
	case g.releasing && len(g.waiting()) == 0:
		g.releasing = false
		c.released()
	case g.assembling: // another plugin turned it away, or it was deleted
		s.retry(now)
	}
}

// released has pods retried when all groups that had to have given up their nodes.
func (c *Coscheduling) released() {
	for _, g := range c.gangs {
		if g.releasing {
			return
		}
	}
	now := c.now()
	for _, g := range c.gangs {
		if g.assembling {
			for _, s := range g.pods {
				if !s.held.IsZero() {
					s.retry(now)
				}
			}
		}
	}
	for _, s := range c.bystanders {
		s.retry(now)
	}
	c.wakeNext(now)
}
