//go:build ignore

package adapter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Types that moved to k8s.io/kube-scheduler/framework in 1.34.
type (
	cycleState = *framework.CycleState
	nodeInfo   = *framework.NodeInfo
	podInfo    = *framework.PodInfo
	stateData  = framework.StateData
	stateKey   = framework.StateKey
	status     = framework.Status
	statusCode = framework.Code
)

const (
	success       = framework.Success
	failure       = framework.Error
	unschedulable = framework.Unschedulable
	unresolvable  = framework.UnschedulableAndUnresolvable
	wait          = framework.Wait
	skip          = framework.Skip
)

func newStatus(code statusCode, reasons ...string) *status {
	return framework.NewStatus(code, reasons...)
}

func asStatus(err error) *status { return framework.AsStatus(err) }

func podOf(p podInfo) *corev1.Pod { return p.Pod }

func stateOf(s cycleState) scheduler.State { return state{s} }

func nodeOf(n nodeInfo) scheduler.NodeInfo { return node{n} }

type queuedPodInfo = *framework.QueuedPodInfo

func queuedPod(q queuedPodInfo) scheduler.QueuedPod {
	return scheduler.QueuedPod{
		Pod: q.Pod, Priority: scheduler.PodPriority(q.Pod), Timestamp: q.Timestamp, Attempts: q.Attempts,
	}
}
