package adapter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// node implements scheduler.NodeInfo. It is a single pointer, so that converting it to an interface
// does not allocate.
type node struct{ info *framework.NodeInfo }

func (n node) Node() *corev1.Node    { return n.info.Node() }
func (n node) PodCount() int         { return len(n.info.Pods) }
func (n node) Pod(i int) *corev1.Pod { return podOf(n.info.Pods[i]) }
func (n node) Requested() scheduler.Resources {
	r := resources(n.info.Requested)
	r.Pods = int64(len(n.info.Pods))
	return r
}
func (n node) Allocatable() scheduler.Resources { return resources(n.info.Allocatable) }

func resources(r *framework.Resource) scheduler.Resources {
	return scheduler.Resources{
		MilliCPU: r.MilliCPU, Memory: r.Memory, EphemeralStorage: r.EphemeralStorage,
		Pods: int64(r.AllowedPodNumber), Scalar: r.ScalarResources,
	}
}

func nodesOf(infos []nodeInfo) []scheduler.NodeInfo {
	nodes := make([]scheduler.NodeInfo, len(infos))
	for i := range infos {
		nodes[i] = nodeOf(infos[i])
	}
	return nodes
}

// lister is the Host as scheduler.NodeLister.
type lister Host

// Nodes implements scheduler.Handle.
func (h *Host) Nodes() scheduler.NodeLister { return (*lister)(h) }

func (l *lister) List() ([]scheduler.NodeInfo, error) {
	infos, err := l.handle.SnapshotSharedLister().NodeInfos().List()
	return nodesOf(infos), err
}

func (l *lister) Get(name string) (scheduler.NodeInfo, error) {
	info, err := l.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return nil, err
	}
	return nodeOf(info), nil
}
