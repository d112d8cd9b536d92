package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Types that moved to k8s.io/kube-scheduler/framework in 1.34.
type (
	cycleState = fwk.CycleState
	nodeInfo   = fwk.NodeInfo
	podInfo    = fwk.PodInfo
	stateData  = fwk.StateData
	stateKey   = fwk.StateKey
	status     = fwk.Status
	statusCode = fwk.Code
)

const (
	success       = fwk.Success
	failure       = fwk.Error
	unschedulable = fwk.Unschedulable
	unresolvable  = fwk.UnschedulableAndUnresolvable
	wait          = fwk.Wait
	skip          = fwk.Skip
)

func newStatus(code statusCode, reasons ...string) *status { return fwk.NewStatus(code, reasons...) }

func asStatus(err error) *status { return fwk.AsStatus(err) }

func podOf(p podInfo) *corev1.Pod { return p.GetPod() }

// stateOf allocates only if s is not the framework's own implementation.
func stateOf(s cycleState) scheduler.State {
	if own, ok := s.(*framework.CycleState); ok {
		return state{own}
	}
	return wrappedState{s}
}

// nodeOf allocates only if n is not the framework's own implementation.
func nodeOf(n nodeInfo) scheduler.NodeInfo {
	if own, ok := n.(*framework.NodeInfo); ok {
		return node{own}
	}
	return wrappedNode{n}
}

// wrappedState is a CycleState that is not the framework's own.
type wrappedState struct{ cycle fwk.CycleState }

func (s wrappedState) Read(key string) (interface{}, bool) { return read(s.cycle, key) }
func (s wrappedState) Write(key string, value interface{}) { write(s.cycle, key, value) }
func (s wrappedState) Delete(key string)                   { remove(s.cycle, stateKey(key)) }

// wrappedNode is a NodeInfo that is not the framework's own.
type wrappedNode struct{ info fwk.NodeInfo }

func (n wrappedNode) Node() *corev1.Node    { return n.info.Node() }
func (n wrappedNode) PodCount() int         { return len(n.info.GetPods()) }
func (n wrappedNode) Pod(i int) *corev1.Pod { return n.info.GetPods()[i].GetPod() }
func (n wrappedNode) Requested() scheduler.Resources {
	r := wrappedResources(n.info.GetRequested())
	r.Pods = int64(n.PodCount())
	return r
}
func (n wrappedNode) Allocatable() scheduler.Resources {
	return wrappedResources(n.info.GetAllocatable())
}

func wrappedResources(r fwk.Resource) scheduler.Resources {
	return scheduler.Resources{
		MilliCPU: r.GetMilliCPU(), Memory: r.GetMemory(), EphemeralStorage: r.GetEphemeralStorage(),
		Pods: int64(r.GetAllowedPodNumber()), Scalar: r.GetScalarResources(),
	}
}

type (
	clusterEvent         = fwk.ClusterEvent
	actionType           = fwk.ActionType
	eventResource        = fwk.EventResource
	clusterEventWithHint = fwk.ClusterEventWithHint
	queueingHint         = fwk.QueueingHint
	queueingHintFn       = fwk.QueueingHintFn
)

const (
	queue     = fwk.Queue
	queueSkip = fwk.QueueSkip

	podResource = fwk.Pod
	podShrinks  = fwk.UpdatePodScaleDown
	podEdits    = fwk.UpdatePodLabel | fwk.UpdatePodScaleDown | fwk.UpdatePodSchedulingGatesEliminated |
		fwk.UpdatePodToleration
)

func actions() map[scheduler.ActionType]actionType {
	return map[scheduler.ActionType]actionType{
		scheduler.ActionAll:                   fwk.All,
		scheduler.ActionAdd:                   fwk.Add,
		scheduler.ActionDelete:                fwk.Delete,
		scheduler.ActionUpdate:                fwk.Update,
		scheduler.ActionUpdateNodeAllocatable: fwk.UpdateNodeAllocatable,
		scheduler.ActionUpdateNodeLabel:       fwk.UpdateNodeLabel,
		scheduler.ActionUpdateNodeTaint:       fwk.UpdateNodeTaint,
		scheduler.ActionUpdateNodeCondition:   fwk.UpdateNodeCondition,
	}
}

// preFlight calls the plugin. Without the method, PreBind has work to do for every pod.
func (p *PreBindPoint) preFlight(ctx context.Context, s cycleState, pod *corev1.Pod, node string) (result *status) {
	defer p.Host.recoverFrom("PreBindPreFlight", pod, &result)
	if plugin, ok := p.Plugin.(scheduler.PreBindPreFlighter); ok {
		return fromPlugin(plugin.PreBindPreFlight(ctx, stateOf(s), pod, node))
	}
	return nil
}

// PreFilter calls the plugin, which gets the nodes from Host.Nodes.
func (p *PreFilterPoint) PreFilter(
	ctx context.Context, s cycleState, pod *corev1.Pod, _ []nodeInfo,
) (*preFilterResult, *status) {
	return p.preFilter(ctx, s, pod)
}
