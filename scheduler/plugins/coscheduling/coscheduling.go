// Package coscheduling is a portable plugin that places a group's pods together or not at all, as
// distributed training, MPI and Spark need it.
//
// Pods with the same group label are a group. Its pods are tried when as many exist as the group's
// size and the cluster's free room may suffice. Each one that gets a node keeps it and waits for
// the group's other pods at Permit. When all have a node, they are bound; when one pod gets none or
// time is up, all give up their nodes, and the group waits until the cluster has more room or a
// back-off is over. Several groups are tried at the same time only if there is room for all of
// them, so that they cannot take each other's room and wait forever. If they get in each other's
// way nevertheless, the first group keeps its nodes and the other groups wait for their turn.
//
// The plugin does not sort the queue. A scheduler has one order for all profiles, and a second
// plugin for it prevents its start. The plugin does not depend on the queue's order.
package coscheduling

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "Coscheduling"

// turnedAwayKey is in a cycle's state if PreFilter turned the pod away.
const turnedAwayKey = Name + "/turned-away"

// Coscheduling places the pods of a group together or not at all.
type Coscheduling struct {
	handle   scheduler.Handle
	settings *settings
	pods     *pods
	groups   *customresource.Values // podGroups; nil if they are ignored
	sized    *customresource.First  // done when groups are known; nil if they are ignored
	attempts *prometheus.CounterVec // by result
	now      func() time.Time

	mu    sync.Mutex
	gangs map[string]*gang
	// first is the group that the other groups make room for, if two have got in each other's way.
	first *gang
	// bystanders are pods without a group that found no room while pods of a group kept theirs.
	bystanders map[types.UID]*podState
	swept      time.Time
}

// New returns the plugin configured by its arguments. It reads pods and PodGroups until ctx is
// done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*Coscheduling, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: the scheduler has no client", Name)
	}
	attempts, err := newMetrics(h.Metrics())
	if err != nil {
		return nil, err
	}
	c := newPlugin(s, attempts, h, time.Now)
	if c.pods, err = watchPods(ctx, h, s, c.recounted); err != nil {
		return nil, err
	}
	if s.PodGroups == PodGroupsAuto {
		c.groups, c.sized = customresource.NewValues(readPodGroup, c.recounted), customresource.NewFirst()
		if err := customresource.Watch(ctx, h, customresource.Options{
			Plugin: Name, Resource: podGroups(), Missing: "sizes are read from labels",
			Set: c.groups.Set, Delete: c.groups.Delete, First: c.sized,
		}); err != nil {
			return nil, err
		}
	}
	go every(ctx, func() { c.reject(c.expire(ctx)) })
	go every(ctx, func() { c.retryPods(ctx) })
	return c, nil
}

func newPlugin(s *settings, attempts *prometheus.CounterVec, h scheduler.Handle, now func() time.Time) *Coscheduling {
	return &Coscheduling{
		handle: h, settings: s, attempts: attempts, now: now,
		gangs: map[string]*gang{}, bystanders: map[types.UID]*podState{},
	}
}

// Rules returns the permissions to read PodGroups, unless they are ignored, and to retry pods.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	rules := []rbacv1.PolicyRule{scheduler.ActivateRule()}
	if s.PodGroups == PodGroupsAuto {
		rules = append(rules, customresource.Rule(podGroups()))
	}
	return rules, nil
}

// Name returns the plugin's name.
func (c *Coscheduling) Name() string { return Name }

// EventsToRegister returns the events that may make room for a group, and the pods that another
// scheduler bound. Other new pods of a group are not among them: the scheduler tries those anyway,
// and the plugin has it retry the other pods.
func (c *Coscheduling) EventsToRegister() []scheduler.ClusterEvent {
	return append(scheduler.RoomEvents(c.podHelps),
		scheduler.ClusterEvent{Resource: scheduler.EventPod, Action: scheduler.ActionAdd, Helps: c.podHelps})
}

// Sign returns the pod's group. The plugin accepts or turns away a pod as a whole, at PreFilter,
// which runs for each pod.
func (c *Coscheduling) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return c.settings.group(pod), nil
}

// PreFilter turns a pod away while its group cannot be placed. The first pod waits until the sizes
// of groups are known.
func (c *Coscheduling) PreFilter(ctx context.Context, state scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	key := c.settings.group(pod)
	if key == "" {
		return nil, nil
	}
	c.sized.Wait(ctx)
	reason, err := c.admit(ctx, key, pod)
	if reason == "" && err == nil {
		return nil, nil
	}
	state.Write(turnedAwayKey, true)
	if err != nil {
		return nil, scheduler.Error(err)
	}
	// Preemption cannot help: it is considered in the decision.
	return nil, scheduler.Unresolvable(reason)
}

// PostFilter is called when no node can run a pod. Other groups then make room for its group, or
// the group gives up its nodes.
func (c *Coscheduling) PostFilter(ctx context.Context, state scheduler.State, pod *corev1.Pod,
	rejected scheduler.Rejections) (string, *scheduler.Status) {
	_, turnedAway := state.Read(turnedAwayKey)
	switch key := c.settings.group(pod); {
	case turnedAway:
	case key == "":
		c.recordBystander(pod)
	default:
		c.reject(c.unplaceable(ctx, key, pod, rejected))
	}
	return "", scheduler.Unschedulable()
}

// Reserve records that the pod has a node.
func (c *Coscheduling) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	key := c.settings.group(pod)
	if key == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.gang(key).state(pod)
	s.reserved, s.allowed, s.held, s.due, s.node = true, false, time.Time{}, time.Time{}, node
	return nil
}

// Unreserve records that the pod has given up its node.
func (c *Coscheduling) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	if key := c.settings.group(pod); key != "" {
		c.gaveUp(key, pod)
	}
}

// Permit lets a group's pods pass when enough of them have a node.
func (c *Coscheduling) Permit(ctx context.Context, _ scheduler.State, pod *corev1.Pod,
	_ string) (*scheduler.Status, time.Duration) {
	key := c.settings.group(pod)
	if key == "" {
		return nil, 0
	}
	allowed, left, problem := c.permit(ctx, key, pod)
	switch {
	case problem != "":
		return scheduler.Unschedulable(problem), 0
	case left > 0:
		return scheduler.Wait("waits for the other pods of pod group " + key), left
	}
	for _, other := range allowed {
		if w := c.handle.GetWaitingPod(other.UID); w != nil {
			w.Allow(Name)
		}
	}
	return nil, 0
}

// reject makes the scheduler reject waiting pods, so that they give up their nodes.
func (c *Coscheduling) reject(waiting []*corev1.Pod) {
	for _, pod := range waiting {
		if w := c.handle.GetWaitingPod(pod.UID); w != nil {
			w.Reject(Name, "pod group "+c.settings.group(pod)+" cannot be placed as a whole")
		}
	}
}

// Results of an attempt to place a group, in metrics.
const (
	// resultPlaced: all pods got a node.
	resultPlaced = "placed"
	// resultUnplaced: no node could run one of the pods, or pods were deleted.
	resultUnplaced = "unplaced"
	// resultTimeout: time was up.
	resultTimeout = "timeout"
	// resultYielded: the group made room for another group.
	resultYielded = "yielded"
)

// newMetrics returns the counter of attempts, by result.
func newMetrics(r prometheus.Registerer) (*prometheus.CounterVec, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_coscheduling_")
	attempts := all.Counter("attempts_total",
		"Attempts of the Coscheduling plugin to place a pod group, by result.", "result")
	return attempts, all.Err()
}
