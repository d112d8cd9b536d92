//go:build pmksched

package d

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// node is one pointer wide, so that making an interface of it allocates nothing.
type node struct{ info *framework.NodeInfo }

func (n node) Node() *corev1.Node    { return n.info.Node() }
func (n node) PodCount() int         { return len(n.info.Pods) }
func (n node) Pod(i int) *corev1.Pod { return n.info.Pods[i].Pod }
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

func nodesOf(infos []*framework.NodeInfo) []scheduler.NodeInfo {
	nodes := make([]scheduler.NodeInfo, len(infos))
	for i := range infos {
		nodes[i] = node{infos[i]}
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
	return node{info}, nil
}
