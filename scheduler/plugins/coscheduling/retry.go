package coscheduling

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// tick is the interval of time checks.
	tick = 100 * time.Millisecond
	// stale is the time after which a retry is repeated. It is more than the longest default back-off
	// of a pod.
	stale = 15 * time.Second
	// maxBystanders limits the pods without a group that are retried after a group gave up its nodes.
	maxBystanders = 100
	// sweepInterval is the interval at which groups without pods are forgotten.
	sweepInterval = time.Minute
)

func every(ctx context.Context, do func()) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// expire ends attempts whose time is up, and back-offs. It returns the pods that have to give up
// their nodes, and takes the lock.
func (c *Coscheduling) expire(ctx context.Context) (rejected []*corev1.Pod) {
	c.lock()
	defer c.mu.Unlock()
	now, busy := c.now(), false
	for _, g := range c.gangs {
		switch {
		case g.releasing: // a pod may not have begun to wait when it was rejected first
			rejected = append(rejected, g.waiting()...)
			busy = true
		case g.assembling:
			rejected = append(rejected, c.check(ctx, g, now)...)
			busy = busy || c.hasPrecedence(g)
		case !g.until.IsZero() && !now.Before(g.until):
			g.until = time.Time{}
			g.wake(now)
		}
	}
	if !busy {
		c.wakeNext(now)
	}
	if now.Sub(c.swept) > sweepInterval {
		c.swept = now
		c.sweep()
	}
	return rejected
}

// check ends the attempt of a group whose time is up or that lacks pods, and repeats retries that
// had no effect.
func (c *Coscheduling) check(ctx context.Context, g *gang, now time.Time) []*corev1.Pod {
	n, problem := c.count(g)
	switch {
	case problem != "" || len(n.pending) < n.missing():
		return c.fail(ctx, g, resultUnplaced)
	case !now.Before(g.deadline):
		return c.fail(ctx, g, resultTimeout)
	}
	for _, s := range g.pods {
		if !s.held.IsZero() && s.due.IsZero() && !s.activated.IsZero() && now.Sub(s.activated) > stale {
			s.retry(now)
		}
	}
	return nil
}

// wakeNext gives the first group that waits for other groups its turn, unless all make room for one
// group.
func (c *Coscheduling) wakeNext(now time.Time) {
	if c.hasFirst() {
		return
	}
	var next *gang
	for _, g := range c.gangs {
		if g.queued && !g.releasing && now.Sub(g.woken) > stale && (next == nil || c.before(g, next)) {
			next = g
		}
	}
	if next == nil {
		return
	}
	next.woken = now
	if !next.wake(now) {
		next.queued = false // its pods are gone, or the scheduler has them already
	}
}

func (c *Coscheduling) sweep() {
	for key, g := range c.gangs {
		if n, _ := c.count(g); n.placed+len(n.pending)+len(g.pods) == 0 && !g.assembling && !g.releasing {
			delete(c.gangs, key)
		}
	}
}

// recordBystander records a pod without a group that no node can run, if pods of a group keep room
// that they may give up. From 1.23 on the scheduler itself retries pods then. It takes the lock.
func (c *Coscheduling) recordBystander(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bystanders) >= maxBystanders {
		return
	}
	for _, g := range c.gangs {
		if len(g.waiting()) > 0 {
			c.bystanders[pod.UID] = &podState{pod: pod}
			return
		}
	}
}

// recounted has a pod retried in a group whose PodGroup changed, or in which a pod has succeeded.
// It takes the lock.
func (c *Coscheduling) recounted(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.gangs[key]; g != nil {
		g.wake(c.now())
	}
}

// retryPods makes the scheduler retry pods whose time has come. It runs in a separate goroutine,
// because each retry is a request to the API server.
func (c *Coscheduling) retryPods(ctx context.Context) {
	for {
		pod := c.nextRetry()
		if pod == nil || ctx.Err() != nil {
			return
		}
		if err := c.handle.Activate(ctx, pod); err != nil {
			if ctx.Err() == nil {
				c.handle.Logger(ctx).Error(err, "Coscheduling cannot retry a pod; it tries again", "namespace", pod.Namespace,
					"pod", pod.Name)
			}
			c.failedRetry(pod.UID)
			return
		}
	}
}

// nextRetry returns a pod whose time has come, or nil. It takes the lock.
func (c *Coscheduling) nextRetry() *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for uid, s := range c.bystanders {
		if s.isDue(now) {
			delete(c.bystanders, uid)
			return s.pod
		}
	}
	for _, g := range c.gangs {
		for _, s := range g.pods {
			if s.isDue(now) {
				s.due, s.activated = time.Time{}, now
				return s.pod
			}
		}
	}
	return nil
}

func (s *podState) isDue(now time.Time) bool { return !s.due.IsZero() && !now.Before(s.due) }

// failedRetry has a pod of a group retried again after a second. It takes the lock.
func (c *Coscheduling) failedRetry(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.gangs {
		if s := g.pods[uid]; s != nil && !s.held.IsZero() {
			s.due = c.now().Add(time.Second)
		}
	}
}
