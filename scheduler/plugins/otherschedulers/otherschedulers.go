// Package otherschedulers is a portable plugin for a scheduler that shares its nodes with others.
//
// A scheduler counts the room that is kept for its own nominated pods, those for which it has
// evicted others. It neither knows the nominations of another scheduler, so that it takes the room
// that the other one has made, nor spares the pods of another one when it evicts. Two schedulers
// that evict each other's pods do so for ever (kubernetes#130429).
//
// The plugin keeps the room of pods that other schedulers have nominated, evicts no pods of other
// schedulers unless its arguments allow it, and stops a pod that evicts the pods of one owner again
// and again.
package otherschedulers

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "OtherSchedulers"

// Any in Arguments.VictimsOf means every scheduler.
const Any = "*"

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// VictimsOf are the names of other schedulers whose pods may be evicted, or "*". By default only
	// pods of the same scheduler name are evicted.
	VictimsOf []string `json:"victimsOf,omitempty"`
}

// OtherSchedulers makes a scheduler take others into account.
type OtherSchedulers struct {
	handle    scheduler.Handle
	victimsOf map[string]bool
	nominated *nominations
	loops     *loops
	kept      *scheduler.Status
	spared    *scheduler.Status
	stopped   *scheduler.Status
	// rejected are the pods from which room is kept, to be retried when it is not kept anymore.
	rejected scheduler.RejectedPods
	heldBack *prometheus.CounterVec
}

// New returns the plugin configured by its arguments. It retries pods until ctx is done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*OtherSchedulers, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: the scheduler has no client", Name)
	}
	p := newPlugin(a, h, time.Now)
	all := scheduler.NewMetrics(h.Metrics(), "pmk_sched_otherschedulers_")
	p.heldBack = all.Counter("held_back_total",
		"Pods that may not evict others for a while: they did so again and again.")
	if all.Err() != nil {
		return nil, all.Err()
	}
	p.heldBack.WithLabelValues().Add(0)
	scheduler.WatchPods(h, p.seen, p.gone)
	go p.retryKept(ctx)
	return p, nil
}

func newPlugin(a Arguments, h scheduler.Handle, now func() time.Time) *OtherSchedulers {
	p := &OtherSchedulers{
		handle: h, victimsOf: map[string]bool{}, nominated: newNominations(now), loops: newLoops(now),
		kept:    scheduler.Unschedulable("room is kept for a pod that another scheduler has nominated"),
		spared:  scheduler.Unschedulable("pods of other schedulers are not evicted"),
		stopped: scheduler.Unresolvable("the pod may not evict others for a while"),
	}
	for _, name := range a.VictimsOf {
		p.victimsOf[name] = true
	}
	return p
}

func decode(args scheduler.Arguments) (Arguments, error) {
	var a Arguments
	if err := args.Decode(&a); err != nil {
		return a, err
	}
	for _, name := range a.VictimsOf {
		if name == "" {
			return a, fmt.Errorf("victimsOf: a name of a scheduler is empty")
		}
	}
	return a, nil
}

// Rules returns the permission to retry pods.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	if _, err := decode(args); err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{scheduler.ActivateRule()}, nil
}

// Name returns the plugin's name.
func (p *OtherSchedulers) Name() string { return Name }

// Sign returns the parts of the pod that decide which pods take room from it.
func (p *OtherSchedulers) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return []interface{}{pod.Spec.SchedulerName, scheduler.PodPriority(pod)}, nil
}

// cycle is the state of a pod in a scheduling cycle.
type cycle struct {
	need  scheduler.Amounts
	ports []scheduler.HostPort
	// added are the nominated pods that the scheduler has put on the node: those of its own profiles.
	added map[types.UID]bool
	// removed are the pods of other schedulers that preemption has taken off the node.
	removed map[types.UID]*corev1.Pod
	// evicts is set while preemption tries the removal of pods.
	evicts bool
	// mayNot is set if the pod is held back.
	mayNot bool
}

// Clone implements scheduler.Cloner.
func (c *cycle) Clone() interface{} {
	clone := *c
	clone.added, clone.removed = map[types.UID]bool{}, map[types.UID]*corev1.Pod{}
	for uid := range c.added {
		clone.added[uid] = true
	}
	for uid, pod := range c.removed {
		clone.removed[uid] = pod
	}
	return &clone
}

func cycleOf(state scheduler.State) *cycle {
	value, _ := state.Read(Name)
	c, _ := value.(*cycle)
	return c
}

// PreFilter prepares the cycle of a pod.
func (p *OtherSchedulers) PreFilter(_ context.Context, state scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	held, reason := p.loops.heldBack(pod)
	if reason != "" {
		p.heldBack.WithLabelValues().Inc()
		p.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, "PreemptionHeldBack", "Scheduling", "%s", reason)
	}
	state.Write(Name, &cycle{need: scheduler.PodRequests(pod), ports: scheduler.HostPorts(pod), mayNot: held})
	return nil, nil
}

// AddPod implements scheduler.PreFilterExtensions. The scheduler adds the pods that it has
// nominated itself, and those that preemption removed and puts back.
func (p *OtherSchedulers) AddPod(_ context.Context, state scheduler.State, _ *corev1.Pod, other *corev1.Pod,
	_ scheduler.NodeInfo) *scheduler.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	if _, removed := c.removed[other.UID]; removed {
		delete(c.removed, other.UID)
		return nil
	}
	if c.added == nil {
		c.added = map[types.UID]bool{}
	}
	c.added[other.UID] = true
	return nil
}

// RemovePod implements scheduler.PreFilterExtensions. Only preemption removes pods.
func (p *OtherSchedulers) RemovePod(_ context.Context, state scheduler.State, pod *corev1.Pod, other *corev1.Pod,
	_ scheduler.NodeInfo) *scheduler.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	if !c.evicts {
		c.evicts = true
		p.loops.tries(pod)
	}
	if p.spares(pod, other) {
		if c.removed == nil {
			c.removed = map[types.UID]*corev1.Pod{}
		}
		c.removed[other.UID] = other
	}
	return nil
}

// spares reports whether a pod is not evicted for another one.
func (p *OtherSchedulers) spares(pod, other *corev1.Pod) bool {
	return other.Spec.SchedulerName != pod.Spec.SchedulerName && !p.victimsOf[other.Spec.SchedulerName] &&
		!p.victimsOf[Any]
}

// Filter rejects a node whose room is kept for nominated pods of other schedulers, or on which
// preemption would have to evict pods of other schedulers.
func (p *OtherSchedulers) Filter(_ context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	if c.evicts && c.mayNot {
		return p.stopped
	}
	nominated := p.nominated.pods.OnNode(node.Node().Name)
	if len(nominated) == 0 && len(c.removed) == 0 {
		return nil
	}
	// What preemption takes off the node counts as if it were there.
	var others claims
	for _, other := range c.removed {
		others.add(scheduler.PodRequests(other), scheduler.HostPorts(other))
	}
	if !others.leave(c, node) {
		return p.spared
	}
	for _, e := range nominated {
		if n, ok := e.Value.(*nomination); ok && !e.Expired(p.nominated.now()) && n.keeps(pod) && !c.added[e.UID] {
			others.add(n.need, n.ports)
		}
	}
	if !others.leave(c, node) {
		p.rejected.Add(p.handle, pod)
		return p.kept
	}
	return nil
}

// claims are what pods that the scheduler does not see on a node take of it.
type claims struct {
	need  scheduler.Amounts
	ports []scheduler.HostPort
}

func (k *claims) add(need scheduler.Amounts, ports []scheduler.HostPort) {
	if k.need == nil {
		k.need = scheduler.Amounts{}
	}
	k.need.Add(need, 1)
	k.ports = append(k.ports, ports...)
}

// leave reports whether the node has room for the pod beside the claims. What nobody claims is left
// to the scheduler's own plugins.
func (k *claims) leave(c *cycle, node scheduler.NodeInfo) bool {
	allocatable, used := node.Allocatable(), node.Requested()
	for name, claimed := range k.need {
		need := c.need[name]
		if need > 0 && claimed > 0 &&
			need > scheduler.Sum(scheduler.Sum(allocatable.Amount(name), -used.Amount(name)), -claimed) {
			return false
		}
	}
	for _, wanted := range c.ports {
		for _, other := range k.ports {
			if wanted.Conflicts(other) {
				return false
			}
		}
	}
	return true
}
