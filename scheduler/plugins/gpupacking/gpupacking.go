// Package gpupacking is a portable plugin that places pods on GPU shares and whole GPUs so that the
// rest stays usable.
//
// A GPU share must be free on one device, but the device plugin reports the sum over all devices on
// a node. The plugin knows each pod's devices, filters nodes by each device's free amount, chooses
// the device, and writes its index in an annotation that the node's device plugin reads.
//
// It prefers the node and the device where the fragment grows least: the free GPU parts that the
// cluster's pods could not use, for lack of GPU or CPU, averaged over the mix of these pods.
package gpupacking

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GPUPacking"

const stateKey = Name + "/demand"

// steps is the number of raw score steps for fragment growth by one device. Nodes within a step are
// considered equal: the mean over the workload cannot predict smaller differences, and following
// them spreads pods over more nodes.
const steps = 12

// runnerUp is the highest score of a node that is not the one to fill.
const runnerUp = 90

// noDevices is the raw score of a node without devices. A pod without GPUs does no harm there, and
// makes no fragment shrink anywhere.
const noDevices = 1

// GPUPacking places pods on shares of GPUs and on whole GPUs.
type GPUPacking struct {
	handle   scheduler.Handle
	log      scheduler.Logger
	settings *settings
	mix      *mix
	now      func() time.Time

	// assumed are the pods that this scheduler has given a node, with their devices. The devices are
	// also in the pod's annotation, but the scheduler sees that only after the pod was bound, and if
	// the pod could not be bound, its annotation is out of date at the next attempt.
	assumed scheduler.AssumedPods

	none, few, full, odd *scheduler.Status

	// oversized are the names of nodes with too many devices, which are logged once.
	oversized sync.Map
	// demands are the demands of pods with many containers, a knownDemand by UID.
	demands sync.Map
}

// New returns the plugin configured by its arguments. It watches pods until ctx is done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*GPUPacking, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	if h.ClientSet() == nil {
		return nil, fmt.Errorf("%s needs a cluster: the scheduler has no client", Name)
	}
	g := &GPUPacking{
		handle: h, log: h.Logger(ctx), settings: s, mix: &mix{}, now: time.Now,
		none: scheduler.Unresolvable("node has no GPUs to share"),
		few:  scheduler.Unresolvable("node has too few GPUs"),
		full: scheduler.Unschedulable("no GPU has enough free"),
		odd:  scheduler.Unresolvable("request is neither a part of one GPU nor a number of whole GPUs"),
	}
	scheduler.WatchPods(h, nil, g.forgetGone)
	if s.workload != nil {
		g.mix.set(s.workload)
		return g, nil
	}
	pods := h.SharedInformerFactory().Core().V1().Pods()
	go g.mix.follow(ctx, pods.Lister(), pods.Informer().HasSynced, s, h.Logger(ctx))
	return g, nil
}

// Rules returns the permission to annotate pods, which kube-scheduler does not have.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	if _, err := decode(args); err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{scheduler.AnnotateRule()}, nil
}

// Name returns the plugin's name.
func (g *GPUPacking) Name() string { return Name }

// EventsToRegister returns the events that can make room on a device.
func (g *GPUPacking) EventsToRegister() []scheduler.ClusterEvent {
	return []scheduler.ClusterEvent{
		{Resource: scheduler.EventPod, Action: scheduler.ActionDelete, Helps: g.podHelps},
		{Resource: scheduler.EventNode, Action: scheduler.ActionAdd | scheduler.ActionUpdateNodeAllocatable,
			Helps: g.nodeHelps},
	}
}

func (g *GPUPacking) podHelps(_ *corev1.Pod, before, _ interface{}) bool {
	deleted, ok := before.(*corev1.Pod)
	return !ok || demandOf(deleted, g.settings.resource).gpu > 0
}

// nodeHelps reports whether a node is new and has GPUs, or has another number of them.
func (g *GPUPacking) nodeHelps(_ *corev1.Pod, before, after interface{}) bool {
	node, ok := after.(*corev1.Node)
	if !ok {
		return true
	}
	old, ok := before.(*corev1.Node)
	if !ok {
		old = &corev1.Node{}
	}
	for _, name := range []corev1.ResourceName{g.settings.resource, g.settings.count} {
		now, was := node.Status.Allocatable[name], old.Status.Allocatable[name]
		if now.Cmp(was) != 0 {
			return true
		}
	}
	return false
}

// signature is the part of a pod that the results depend on.
type signature struct{ CPU, GPU int64 }

// Sign returns the CPU and GPU requests of the pod. The results for a node depend on nothing else
// but the node and the pods on it, and on the workload, which does not depend on where a pod was
// placed.
func (g *GPUPacking) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	d := demandOf(pod, g.settings.resource)
	return signature{CPU: d.cpu, GPU: d.gpu}, nil
}

// PreFilter reads the pod's requests. A pod without GPUs is scored only.
func (g *GPUPacking) PreFilter(_ context.Context, state scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	d := demandOf(pod, g.settings.resource)
	state.Write(stateKey, d)
	if d.gpu <= 0 {
		return nil, scheduler.Skip()
	}
	return nil, nil
}

// demand returns the demand that PreFilter has recorded.
func (g *GPUPacking) demand(state scheduler.State, pod *corev1.Pod) demand {
	if written, ok := state.Read(stateKey); ok {
		if d, ok := written.(demand); ok {
			return d
		}
	}
	return demandOf(pod, g.settings.resource)
}

// Filter rejects nodes on which no device, or too few of them, have the amount that the pod
// requests.
func (g *GPUPacking) Filter(_ context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	d := g.demand(state, pod)
	if d.gpu <= 0 {
		return nil
	}
	r, ok := g.roomOf(node, pod.UID)
	if !ok {
		return g.none
	}
	if !r.divisible(d.gpu) {
		return g.odd
	}
	if _, needed := r.part(d.gpu); needed > len(r.free) {
		return g.few
	}
	d.cpu = 0 // NodeResourcesFit filters by CPU
	if r.cpu = 0; !r.fits(d) {
		return g.full
	}
	return nil
}

// Score returns by how much the fragment of the node shrinks, in whole steps; less than 0 if it
// grows. Nodes without devices are better for pods without GPUs than all other nodes.
func (g *GPUPacking) Score(_ context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	d := g.demand(state, pod)
	r, ok := g.roomOf(node, pod.UID)
	if !ok {
		return noDevices, nil
	}
	_, growth, ok := g.mix.get().place(r, d)
	if !ok {
		return -steps * int64(len(r.free)), nil // another pod has taken the room meanwhile
	}
	const rounding = 1e-6 // of the sums of floating-point numbers
	return int64(math.Floor(-growth*steps/float64(r.whole) + rounding)), nil
}

// NormalizeScore gives the highest score to the first of the best nodes by name, so that one is
// full before the next one is used. A choice among equal nodes by chance, or by plugins that prefer
// empty nodes, leaves parts of many devices and takes CPU from many GPU nodes. All nodes without
// devices have the highest score if the pod needs none.
func (g *GPUPacking) NormalizeScore(_ context.Context, state scheduler.State, pod *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	if len(scores) == 0 {
		return nil
	}
	worst, first := scores[0].Score, scores[0]
	for _, s := range scores {
		if s.Score < worst {
			worst = s.Score
		}
		if s.Score > first.Score || s.Score == first.Score && s.Name < first.Name {
			first = s
		}
	}
	all := first.Score == noDevices && g.demand(state, pod).gpu <= 0
	for i, s := range scores {
		switch {
		case s.Name == first.Name, all && s.Score == first.Score:
			scores[i].Score = scheduler.MaxNodeScore
		case s.Score == first.Score:
			scores[i].Score = runnerUp
		default:
			scores[i].Score = runnerUp * (s.Score - worst) / (first.Score - worst)
		}
	}
	return nil
}
