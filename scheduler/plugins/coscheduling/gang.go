package coscheduling

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type gang struct {
	key  string
	pods map[types.UID]*podState
	// assembling is set while the pods are being placed: pods with a node wait until deadline for
	// the others.
	assembling bool
	deadline   time.Time
	// precedence is until when other groups leave room for the pods that have no node yet. A PodGroup
	// may set a later deadline: the pods of its group wait so long, and no other group does.
	precedence time.Time
	// scheduler is the schedulerName of the pods that this scheduler has tried.
	scheduler string
	// releasing is set after that failed, until all pods that waited have given up their nodes.
	releasing bool
	// queued is set while the group waits for other groups that are being placed, and woken is the
	// time of the last retry for its turn.
	queued bool
	woken  time.Time
	// failures is the number of consecutive failures, until is the end of the back-off, and room is
	// the free room on the nodes that can run its pods when the last attempt began.
	failures int
	until    time.Time
	room     amounts
}

type podState struct {
	pod *corev1.Pod
	// seen is set when the scheduler has tried to place the pod.
	seen bool
	// reserved is set from Reserve to Unreserve, or until the pod is bound, and allowed if Permit has
	// let it pass.
	reserved, allowed bool
	// node is the node that is reserved.
	node string
	// blocked is set if no node could run the pod when it was last tried.
	blocked bool
	// held is when the pod was turned away; zero if it is not. due is when it is to be retried,
	// activated when it was.
	held, due, activated time.Time
}

func (s *podState) waiting() bool { return s.reserved && !s.allowed }

func newGang(key string) *gang { return &gang{key: key, pods: map[types.UID]*podState{}} }

// state returns a pod's state, which it creates.
func (g *gang) state(pod *corev1.Pod) *podState {
	s := g.pods[pod.UID]
	if s == nil {
		s = &podState{}
		g.pods[pod.UID] = s
	}
	s.pod = pod
	g.scheduler = pod.Spec.SchedulerName
	return s
}

// waiting returns the pods that have a node and wait for the other pods.
func (g *gang) waiting() []*corev1.Pod {
	var all []*corev1.Pod
	for _, s := range g.pods {
		if s.waiting() {
			all = append(all, s.pod)
		}
	}
	return all
}

// wake has a pod that was turned away retried. The other pods follow when that pod has a node. A
// pod that no node could run is retried too: events do that, but not in 1.20 to 1.22 if another
// group gave up its nodes.
func (g *gang) wake(now time.Time) (found bool) {
	woken := false
	for _, s := range g.pods {
		switch {
		case s.held.IsZero():
		case s.blocked:
			s.retry(now)
			found = true
		case !woken:
			s.retry(now)
			woken, found = true, true
		}
	}
	return found
}

// wakeAll has all pods retried that were turned away, once each.
func (g *gang) wakeAll(now time.Time) {
	for _, s := range g.pods {
		if !s.held.IsZero() && s.due.IsZero() && s.activated.Before(s.held) {
			s.retry(now)
		}
	}
}

// settle is the time until the scheduler has put a pod that was turned away into the queue of
// unschedulable pods, and has released the node resources of a pod that gave up its node. A retry
// before is lost.
const settle = 300 * time.Millisecond

func (s *podState) retry(now time.Time) { s.due = now.Add(settle) }

func (s *podState) hold(now time.Time) { s.held, s.due = now, time.Time{} }

type count struct {
	// size is the number of pods that are placed together.
	size    int
	timeout time.Duration
	// placed have a node, or have succeeded in the same run. pending have none.
	placed  int
	pending []*corev1.Pod
	// blocked are pending pods that no node could run, one of them by name.
	blocked int
	stuck   string
	// priority is the highest of the pods, and oldest when the first was created.
	priority int32
	oldest   time.Time
}

// missing returns the number of pods to place until the group is complete.
func (n count) missing() int { return n.size - n.placed }

// before reports whether a group of these pods goes before another group.
func (n count) before(other count) bool {
	if n.priority != other.priority {
		return n.priority > other.priority
	}
	return n.oldest.Before(other.oldest)
}

// count counts a group's pods, and forgets the states of pods that are bound or deleted. The
// problem is a text for the user if the group has no size.
func (c *Coscheduling) count(g *gang) (n count, problem string) {
	all := c.pods.of(g.key)
	n.placed = c.pods.finished(g.key, all)
	present := map[types.UID]bool{}
	for i, pod := range all {
		present[pod.UID] = true
		s := g.pods[pod.UID]
		if i == 0 || scheduler.PodPriority(pod) > n.priority {
			n.priority = scheduler.PodPriority(pod)
		}
		if created := pod.CreationTimestamp.Time; i == 0 || created.Before(n.oldest) {
			n.oldest = created
		}
		switch {
		case pod.Spec.NodeName != "":
			delete(g.pods, pod.UID)
			n.placed++
		case s != nil && s.reserved:
			n.placed++
		case gated(pod) && (s == nil || !s.seen):
		case pod.Spec.SchedulerName != g.scheduler: // it would keep the others waiting
		default:
			n.pending = append(n.pending, pod)
			if s != nil && s.blocked {
				n.blocked++
				n.stuck = pod.Name
			}
		}
	}
	for uid, s := range g.pods {
		if !present[uid] && !s.waiting() { // Unreserve is called for waiting pods
			delete(g.pods, uid)
		}
	}
	n.size, n.timeout, problem = c.sizeOf(g.key, all)
	return n, problem
}

// sizeOf returns how many pods of a group are placed together, and how long they wait for each
// other: from its PodGroup, or the largest number in its pods' labels.
func (c *Coscheduling) sizeOf(key string, all []*corev1.Pod) (size int, timeout time.Duration, problem string) {
	timeout = c.settings.timeout
	if c.groups != nil {
		if found, ok := c.groups.Get(key).(podGroup); ok {
			if found.timeout > 0 {
				timeout = found.timeout
			}
			return found.minMember, timeout, ""
		}
	}
	for _, pod := range all {
		text := pod.Labels[c.settings.MinMemberLabel]
		if text == "" {
			continue
		}
		labelled, err := strconv.Atoi(text)
		if err != nil || labelled < 1 {
			return 0, timeout, fmt.Sprintf("pod group %s: label %s of pod %s must be 1 or more, not %q", key,
				c.settings.MinMemberLabel, pod.Name, text)
		}
		if labelled > size {
			size = labelled
		}
	}
	if size == 0 {
		problem = fmt.Sprintf("pod group %s has no size: no PodGroup has that name, and its pods have no label %s", key,
			c.settings.MinMemberLabel)
		if c.groups == nil {
			problem = fmt.Sprintf("pod group %s has no size: its pods have no label %s", key, c.settings.MinMemberLabel)
		}
	}
	return size, timeout, problem
}
