// Package numaaware is a portable plugin that places pods on nodes where they get their resources
// from one NUMA node, as far as the nodes' NodeResourceTopologies show it.
//
// The kubelet decides which zone a pod gets, and with the policy single-numa-node it rejects a pod
// that no zone has room for. kube-scheduler compares the sums of nodes only, so that it can choose
// such a node again and again.
package numaaware

import (
	"context"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "NUMAAware"

// NUMAAware filters and scores nodes by the room in their zones.
type NUMAAware struct {
	handle     scheduler.Handle
	settings   *settings
	topologies *customresource.Values // *topology
	first      *customresource.First  // done when the topologies are known
	now        func() time.Time

	// assumed are the pods whose resources may still be missing in the topology of their node, as
	// uncounted. A pod expires a while after the kubelet was seen to have accepted it, which gives it
	// its zone.
	assumed scheduler.AssumedPods

	noRoom, unaligned *scheduler.Status

	// rejected are the pods that found no zone with room, to be retried when a topology changes or
	// a pod does not count anymore.
	rejected scheduler.RejectedPods
}

// New returns the plugin configured by its arguments. It reads NodeResourceTopologies until ctx is
// done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*NUMAAware, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	p := newPlugin(ctx, s, h, time.Now)
	p.first = customresource.NewFirst()
	scheduler.WatchPods(h, p.observe, p.forget)
	go p.expireEvery(ctx, expiryInterval)
	return p, customresource.Watch(ctx, h, customresource.Options{
		Plugin: Name, Resource: nodeResourceTopologies(), Missing: "no node has a known topology",
		Set: p.topologies.Set, Delete: p.topologies.Delete, First: p.first,
	})
}

func newPlugin(ctx context.Context, s *settings, h scheduler.Handle, now func() time.Time) *NUMAAware {
	p := &NUMAAware{
		handle: h, settings: s, now: now,
		noRoom:    scheduler.Unresolvable("no NUMA node has room for the pod"),
		unaligned: scheduler.Unresolvable("the node does not align NUMA resources"),
	}
	p.topologies = customresource.NewValues(readTopology, func(node string) {
		p.includeStarted(node)
		p.rejected.Retry(ctx, h, Name)
	})
	return p
}

// Rules returns the permissions to read NodeResourceTopologies and to retry pods.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	if _, err := decode(args); err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{
		scheduler.ActivateRule(), customresource.Rule(nodeResourceTopologies()),
	}, nil
}

// Name returns the plugin's name.
func (p *NUMAAware) Name() string { return Name }

// EventsToRegister returns the events that may make room on a node. The plugin retries pods when a
// topology changes.
func (p *NUMAAware) EventsToRegister() []scheduler.ClusterEvent {
	return scheduler.RoomEvents(p.podHelps)
}

// podHelps reports whether a pod left its node that counted in the zones there. Pods that need
// nothing from a zone do not count.
func (p *NUMAAware) podHelps(_ *corev1.Pod, before, after interface{}) bool {
	old, ok := before.(*corev1.Pod)
	return !ok || scheduler.LeftNode(after) && needOf(old) != nil
}

// Sign returns the requests of the pod that its zones depend on.
func (p *NUMAAware) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	n := needOf(pod)
	if n == nil {
		return nil, nil
	}
	return []interface{}{n.init, n.running}, nil
}

// PreFilter computes the resources that have to come from one zone. The first pod waits until the
// topologies are known.
func (p *NUMAAware) PreFilter(ctx context.Context, state scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	n := needOf(pod)
	if n == nil {
		return nil, scheduler.Skip()
	}
	p.first.Wait(ctx)
	state.Write(Name, n)
	return nil, nil
}

func needIn(state scheduler.State) *need {
	value, _ := state.Read(Name)
	n, _ := value.(*need)
	return n
}

// Filter rejects nodes whose kubelet would reject the pod.
func (p *NUMAAware) Filter(_ context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	n := needIn(state)
	if n == nil {
		return nil
	}
	name := node.Node().Name
	t := p.topologyOf(name)
	if t == nil || !t.single {
		if p.settings.Unaligned == UnalignedReject {
			p.rejected.Add(p.handle, pod) // the node may be new and its topology not known yet
			return p.unaligned
		}
		return nil
	}
	var placed placement
	missing := p.missing(name)
	if t.place(n, t.without(missing), &placed) {
		return nil
	}
	// The event that deletes a pod makes the scheduler retry other pods, possibly before it has
	// reached the plugin.
	if missing != nil {
		if t.place(n, t.without(p.missingOf(node)), &placed) {
			return nil
		}
	}
	p.rejected.Add(p.handle, pod)
	return p.noRoom
}

// PreScore skips pods that need no zone.
func (p *NUMAAware) PreScore(_ context.Context, state scheduler.State, _ *corev1.Pod,
	_ []scheduler.NodeInfo) *scheduler.Status {
	if needIn(state) == nil {
		return scheduler.Skip()
	}
	return nil
}

// Score returns how free the pod's zones are, or how full. It returns 0 if the pod would be spread
// over several zones.
func (p *NUMAAware) Score(_ context.Context, state scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	n, name := needIn(state), node.Node().Name
	t := p.topologyOf(name)
	if n == nil || t == nil {
		return scheduler.MinNodeScore, nil
	}
	var placed placement
	zones := t.without(p.missing(name))
	if !t.place(n, zones, &placed) {
		return scheduler.MinNodeScore, nil
	}
	return t.score(t.parts(n), zones, &placed, p.settings.Strategy), nil
}

// score returns the mean score of the zones for a pod's parts, each by the resources that the part
// needs.
func (t *topology) score(parts []amounts, zones []zone, placed *placement, strategy string) int64 {
	sum, count := int64(0), int64(0)
	for i, part := range parts {
		z := placed.zone(i)
		if z == noZone {
			continue
		}
		for name := range part {
			allocatable := zones[z].allocatable[name]
			if !t.has[name] || allocatable <= 0 {
				continue
			}
			share := shareOf(scheduler.Sum(zones[z].available[name], -placed.of(z, name)), allocatable)
			if strategy == StrategyMostAllocated {
				share = scheduler.MaxNodeScore - share
			}
			sum += share
			count++
		}
	}
	if count == 0 {
		return scheduler.MinNodeScore
	}
	return sum / count
}

// shareOf returns which share of a zone is free, from MinNodeScore to MaxNodeScore. An object may
// have amounts of any size, and more available than allocatable.
func shareOf(free, allocatable int64) int64 {
	switch {
	case free <= 0:
		return scheduler.MinNodeScore
	case free >= allocatable:
		return scheduler.MaxNodeScore
	case allocatable > math.MaxInt64/scheduler.MaxNodeScore: // the product would overflow
		return free / (allocatable / scheduler.MaxNodeScore)
	}
	return scheduler.MaxNodeScore * free / allocatable
}

// Reserve counts the pod in all zones of its node until the topology shows it.
func (p *NUMAAware) Reserve(_ context.Context, state scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	if n := needIn(state); n != nil {
		p.assumed.Assume(scheduler.AssumedPod{UID: pod.UID, Node: node, Value: uncounted{need: n.all}})
	}
	p.rejected.Remove(pod.UID)
	return nil
}

// Unreserve gives the room back.
func (p *NUMAAware) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	p.assumed.Forget(pod.UID)
}
