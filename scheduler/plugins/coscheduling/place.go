package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// slack is the additional time that the scheduler waits at Permit compared to the plugin, so that
// the plugin decides for all pods at once.
const slack = 30 * time.Second

// The caller of the methods in this file and in retry.go holds the lock, unless the method's
// comment states that it takes the lock.

// lock takes the lock for methods that count pods, which see the pods as they are from now on.
func (c *Coscheduling) lock() {
	c.mu.Lock()
	c.pods.scanned = nil
}

// gang returns a group's state, which it creates.
func (c *Coscheduling) gang(key string) *gang {
	g := c.gangs[key]
	if g == nil {
		g = newGang(key)
		c.gangs[key] = g
	}
	return g
}

// admit decides whether a pod may be placed now, and returns the reason if not. It takes the lock.
func (c *Coscheduling) admit(ctx context.Context, key string, pod *corev1.Pod) (reason string, err error) {
	c.lock()
	defer c.mu.Unlock()
	g := c.gang(key)
	s := g.state(pod)
	s.seen, s.blocked = true, false
	g.queued, g.woken = false, time.Time{}
	n, reason := c.count(g)
	if reason == "" {
		reason, err = c.assemble(ctx, g, n, pod)
	}
	if reason != "" || err != nil {
		s.hold(c.now())
		return reason, err
	}
	s.held, s.due = time.Time{}, time.Time{}
	return "", nil
}

// assemble begins to place a group, or returns why a pod cannot be placed now.
func (c *Coscheduling) assemble(ctx context.Context, g *gang, n count, pod *corev1.Pod) (reason string, err error) {
	switch {
	case n.missing() <= 0: // it is one more than needed, or takes the place of another one
		return "", nil
	case g.releasing:
		g.queued = true
		return fmt.Sprintf("pod group %s gives up its nodes", g.key), nil
	case len(n.pending) < n.missing():
		return fmt.Sprintf("pod group %s has %d of %d pods", g.key, n.placed+len(n.pending), n.size), nil
	case g.assembling:
		return "", nil
	case len(n.pending)-n.blocked < n.missing():
		return fmt.Sprintf("pod group %s: no node can run its pod %s", g.key, n.stuck), nil
	case c.hasFirst():
		g.queued = true
		return fmt.Sprintf("pod group %s waits for pod group %s", g.key, c.first.key), nil
	}
	need := needOf(n.pending, n.missing())
	nodes, err := c.handle.Nodes().List()
	if err != nil {
		return "", fmt.Errorf("list the nodes for pod group %s: %w", g.key, err)
	}
	free := freeOf(nodes, need, nil)
	claimed, kept := c.claimedByOthers(g)
	shapes := shapesOf(n.pending)
	fits := func(gone func(*corev1.Pod) bool) bool { return placeable(nodes, shapes, gone) >= n.missing() }
	now := c.now()
	switch {
	case covers(free, sumOf(need, claimed)) && fits(nil):
	case covers(sumOf(free, kept), need) && len(claimed)+len(kept) > 0 && fits(c.keptByOthers(g)):
		g.queued = true
		return fmt.Sprintf("pod group %s waits for other pod groups", g.key), nil
	case !covers(freeOf(nodes, need, canEvict(pod)), need):
		c.wakeNext(now) // the next group may need less
		name := free.Missing(need).First()
		return fmt.Sprintf("pod group %s needs %s of %s, more than is free", g.key, scheduler.FormatAmount(name, need[name]),
			name), nil
	case !fits(canEvict(pod)):
		c.wakeNext(now)
		return fmt.Sprintf("pod group %s: the nodes that can run its pods have room for %d, and it needs %d", g.key,
			placeable(nodes, shapes, nil), n.missing()), nil
	}
	room := freeOf(usable(nodes, shapes), need, nil)
	if now.Before(g.until) && !exceeds(room, g.room) {
		return fmt.Sprintf("pod group %s could not be placed, and is tried again later", g.key), nil
	}
	g.assembling, g.deadline, g.room, g.until = true, now.Add(n.timeout), room, time.Time{}
	if g.precedence = g.deadline; n.timeout > c.settings.timeout {
		g.precedence = now.Add(c.settings.timeout)
	}
	c.handle.Logger(ctx).Info(2, "Coscheduling places a pod group", "podGroup", g.key, "size", n.size, "placed", n.placed,
		"timeout", n.timeout)
	c.wakeNext(now)
	return "", nil
}

// claimedByOthers returns the resources that other groups that are being placed still need, and the
// resources that their waiting pods keep.
func (c *Coscheduling) claimedByOthers(g *gang) (claimed, kept amounts) {
	claimed, kept = amounts{}, amounts{}
	for _, other := range c.gangs {
		if other == g || !other.assembling && !other.releasing {
			continue
		}
		for _, pod := range other.waiting() {
			kept.Add(scheduler.PodRequests(pod), 1)
		}
		if n, problem := c.count(other); other.assembling && c.hasPrecedence(other) && problem == "" {
			claimed.Add(needOf(n.pending, n.missing()), 1)
		}
	}
	return claimed, kept
}

// keptByOthers returns a function that reports whether a pod waits for its group, another group
// that is being placed or gives up its nodes.
func (c *Coscheduling) keptByOthers(g *gang) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		other := c.gangs[c.settings.group(pod)]
		if other == nil || other == g || !other.assembling && !other.releasing {
			return false
		}
		s := other.pods[pod.UID]
		return s != nil && s.waiting()
	}
}

// hasPrecedence reports whether other groups leave room for a group that is being placed.
func (c *Coscheduling) hasPrecedence(g *gang) bool { return c.now().Before(g.precedence) }

// hasFirst reports whether all groups make room for one.
func (c *Coscheduling) hasFirst() bool { return c.first != nil && c.hasPrecedence(c.first) }

// permit decides about a pod that has a node: the pods that may pass with it, or how long it waits,
// or why it is turned away. It takes the lock.
func (c *Coscheduling) permit(ctx context.Context, key string,
	pod *corev1.Pod) (allowed []*corev1.Pod, left time.Duration, problem string) {
	c.lock()
	defer c.mu.Unlock()
	g, now := c.gang(key), c.now()
	n, problem := c.count(g)
	switch {
	case problem != "":
		return nil, 0, problem
	case n.missing() <= 0:
		return c.complete(ctx, g, pod), 0, ""
	case !g.assembling || !now.Before(g.deadline):
		// after a pause of the process a pod may come here before expire is called
		return nil, 0, fmt.Sprintf("pod group %s cannot be placed as a whole", key)
	}
	g.wakeAll(now)
	return nil, g.deadline.Sub(now) + slack, ""
}

// complete lets all pods of a group pass, and returns the waiting pods except the pod that is
// permitted.
func (c *Coscheduling) complete(ctx context.Context, g *gang, pod *corev1.Pod) []*corev1.Pod {
	var waiting []*corev1.Pod
	for uid, s := range g.pods {
		if s.waiting() && uid != pod.UID {
			waiting = append(waiting, s.pod)
		}
		s.allowed = s.reserved
	}
	if !g.assembling {
		return waiting // the group was placed before
	}
	g.assembling, g.failures, g.until = false, 0, time.Time{}
	if c.first == g {
		c.first = nil
	}
	c.attempts.WithLabelValues(resultPlaced).Inc()
	c.handle.Logger(ctx).Info(2, "Coscheduling has placed a pod group", "podGroup", g.key, "pods", len(waiting)+1)
	c.wakeNext(c.now())
	return waiting
}

// unplaceable records that no node can run a pod, and returns the pods that have to give up their
// nodes. It takes the lock.
func (c *Coscheduling) unplaceable(ctx context.Context, key string, pod *corev1.Pod,
	nodes scheduler.Rejections) (rejected []*corev1.Pod) {
	c.lock()
	defer c.mu.Unlock()
	g, now := c.gang(key), c.now()
	s := g.state(pod)
	s.blocked = true
	s.hold(now)
	if n, problem := c.count(g); !g.assembling || problem == "" && len(n.pending)-n.blocked >= n.missing() {
		return nil // there are enough other pods
	}
	rivals, releasing := c.rivals(g, nodes)
	if releasing {
		return nil // the pod is retried when they have given up their nodes
	}
	if len(rivals) == 0 {
		return c.fail(ctx, g, resultUnplaced)
	}
	// The first rival keeps its nodes, so that one of the groups is placed.
	keep := g
	for _, r := range rivals {
		if a, b := c.hasPrecedence(r), c.hasPrecedence(keep); a && !b || a == b && c.before(r, keep) {
			keep = r
		}
	}
	c.first = keep
	for _, r := range append(rivals, g) {
		if r != keep {
			rejected = append(rejected, c.yield(ctx, r)...)
		}
	}
	return rejected
}

// rivals returns the other groups that are being placed and keep a node that a pod of the group
// might get without them, and whether any group is giving up its nodes. Groups that are not in the
// way do not make room: a group that no node can run for another reason would only delay them.
func (c *Coscheduling) rivals(g *gang, nodes scheduler.Rejections) (all []*gang, releasing bool) {
	for _, other := range c.gangs {
		switch {
		case other == g:
		case other.releasing:
			releasing = true
		case other.assembling && other.keepsNodeOf(nodes):
			all = append(all, other)
		}
	}
	return all, releasing
}

// keepsNodeOf reports whether a pod of the group waits on a node that rejected another pod for a
// reason that may end with it.
func (g *gang) keepsNodeOf(nodes scheduler.Rejections) bool {
	for _, s := range g.pods {
		if s.waiting() && nodes.Status(s.node).Code() == scheduler.CodeUnschedulable {
			return true
		}
	}
	return false
}

// before reports whether a group goes before another group: by priority, age and name.
func (c *Coscheduling) before(a, b *gang) bool {
	m, _ := c.count(a)
	n, _ := c.count(b)
	if m.before(n) || n.before(m) {
		return m.before(n)
	}
	return a.key < b.key
}
