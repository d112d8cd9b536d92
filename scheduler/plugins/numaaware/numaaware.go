// Package numaaware is a portable plugin that places pods on nodes where they get their resources from one NUMA node, as far as the nodes'
// NodeResourceTopologies show it.
//
// The kubelet decides which zone a pod gets, and with the policy single-numa-node it rejects a pod that no zone has room for. kube-scheduler
// compares the sums of nodes only, so that it can choose such a node again and again.
package numaaware

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "NUMAAware"

// NUMAAware filters and scores nodes by the room in their zones.
type NUMAAware struct {
	settings *settings
	topology *topologies
	assumed  *assumed

	noRoom, unaligned *scheduler.Status

	// rejected are the pods that found no zone with room, to be retried when a topology changes.
	rejected scheduler.RejectedPods
}

// New returns the plugin configured by its arguments. It reads NodeResourceTopologies until ctx is done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*NUMAAware, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	p := newPlugin(ctx, s, h, time.Now)
	// The results differ between releases of client-go. They are not needed: the handler is never removed.
	h.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		UpdateFunc: func(_, now interface{}) { p.observe(now) },
		DeleteFunc: p.forget,
	})
	return p, p.topology.watch(ctx, h)
}

func newPlugin(ctx context.Context, s *settings, h scheduler.Handle, now func() time.Time) *NUMAAware {
	p := &NUMAAware{
		settings: s, assumed: newAssumed(s.settle, now),
		noRoom:    scheduler.Unresolvable("no NUMA node has room for the pod"),
		unaligned: scheduler.Unresolvable("the node does not align NUMA resources"),
	}
	p.topology = newTopologies(func(node string) {
		p.assumed.updated(node)
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
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		customresource.Rule(nodeResourceTopologies()),
	}, nil
}

// Name returns the plugin's name.
func (p *NUMAAware) Name() string { return Name }

// EventsToRegister returns the events that may make room on a node. The plugin retries pods when a topology changes.
func (p *NUMAAware) EventsToRegister() []scheduler.ClusterEvent {
	return []scheduler.ClusterEvent{
		{Resource: scheduler.EventPod, Action: scheduler.ActionDelete | scheduler.ActionUpdate},
		{Resource: scheduler.EventNode, Action: scheduler.ActionAdd | scheduler.ActionUpdateNodeAllocatable | scheduler.ActionUpdateNodeLabel | scheduler.ActionUpdateNodeTaint},
	}
}

// Sign returns the requests of the pod that its zones depend on.
func (p *NUMAAware) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	n := needOf(pod)
	if n == nil {
		return nil, nil
	}
	return [][]amounts{n.init, n.containers}, nil
}

// PreFilter computes the resources that have to come from one zone.
func (p *NUMAAware) PreFilter(_ context.Context, state scheduler.State, pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	n := needOf(pod)
	if n == nil {
		return nil, scheduler.Skip()
	}
	state.Write(Name, n)
	return nil, nil
}

func needIn(state scheduler.State) *need {
	value, _ := state.Read(Name)
	n, _ := value.(*need)
	return n
}

// Filter rejects nodes whose kubelet would reject the pod.
func (p *NUMAAware) Filter(_ context.Context, state scheduler.State, pod *corev1.Pod, node scheduler.NodeInfo) *scheduler.Status {
	n := needIn(state)
	if n == nil {
		return nil
	}
	name := node.Node().Name
	t := p.topology.of(name)
	if t == nil || !t.single {
		if p.settings.Unaligned == UnalignedReject {
			return p.unaligned
		}
		return nil
	}
	var chosen [8]int
	unseen := p.assumed.of(name)
	if _, ok := t.place(n, t.without(unseen), chosen[:0]); ok {
		return nil
	}
	// The event that deletes a pod makes the scheduler retry others, possibly before it has reached the plugin.
	if unseen != nil {
		if _, ok := t.place(n, t.without(p.assumed.on(node)), chosen[:0]); ok {
			return nil
		}
	}
	p.rejected.Add(pod)
	return p.noRoom
}

// PreScore skips pods that need no zone.
func (p *NUMAAware) PreScore(_ context.Context, state scheduler.State, _ *corev1.Pod, _ []scheduler.NodeInfo) *scheduler.Status {
	if needIn(state) == nil {
		return scheduler.Skip()
	}
	return nil
}

// Score returns how free the zones of the pod are, or how full. It returns 0 if the pod would be
// spread over several zones.
func (p *NUMAAware) Score(_ context.Context, state scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) (int64, *scheduler.Status) {
	n, name := needIn(state), node.Node().Name
	t := p.topology.of(name)
	if n == nil || t == nil {
		return scheduler.MinNodeScore, nil
	}
	var buffer [8]int
	zones := t.without(p.assumed.of(name))
	chosen, ok := t.place(n, zones, buffer[:0])
	if !ok {
		return scheduler.MinNodeScore, nil
	}
	return t.score(t.parts(n), zones, chosen, p.settings.Strategy), nil
}

// score returns the mean score of the zones of a pod's parts, each by the resources that the part
// needs.
func (t *topology) score(parts []amounts, zones []zone, chosen []int, strategy string) int64 {
	sum, count := int64(0), int64(0)
	for i, part := range parts {
		z := chosen[i]
		if z == noZone {
			continue
		}
		for name := range part {
			allocatable := zones[z].allocatable[name]
			if !t.has[name] || allocatable <= 0 {
				continue
			}
			free := zones[z].available[name] - taken(name, z, parts, chosen)
			if free > allocatable {
				free = allocatable
			}
			share := scheduler.MaxNodeScore * free / allocatable
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

// Reserve counts the pod in all zones of its node until the topology shows it.
func (p *NUMAAware) Reserve(_ context.Context, state scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	if n := needIn(state); n != nil {
		p.assumed.add(node, pod.UID, n.all)
	}
	p.rejected.Remove(pod.UID)
	return nil
}

// Unreserve gives the room back.
func (p *NUMAAware) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) {
	p.assumed.remove(node, pod.UID)
}

func (p *NUMAAware) observe(changed interface{}) {
	if pod, ok := changed.(*corev1.Pod); ok {
		p.assumed.observe(pod)
	}
}

// forget forgets a pod that the informer reported as deleted or finished.
func (p *NUMAAware) forget(deleted interface{}) {
	if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	pod, ok := deleted.(*corev1.Pod)
	if !ok {
		return
	}
	p.assumed.remove(pod.Spec.NodeName, pod.UID)
	p.rejected.Remove(pod.UID)
}
