// Package portable implements the logic of package native with the portable API.
package portable

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the configuration.
const Name = "FewestPodsPortable"

const maxPods = 100

// FewestPods rejects nodes with many pods, and prefers nodes with few pods and free CPU.
type FewestPods struct{ full *scheduler.Status }

// New makes the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*FewestPods, error) {
	return &FewestPods{full: scheduler.Unschedulable("too many pods")}, nil
}

// Name returns the constant.
func (*FewestPods) Name() string { return Name }

// Filter rejects full nodes.
func (f *FewestPods) Filter(_ context.Context, _ scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) *scheduler.Status {
	if node.PodCount() >= maxPods {
		return f.full
	}
	return nil
}

// Score is the mean of free room for pods and free CPU.
func (f *FewestPods) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod, node scheduler.NodeInfo) (int64, *scheduler.Status) {
	free := int64(0)
	if allocatable := node.Allocatable().MilliCPU; allocatable > 0 {
		free = (allocatable - node.Requested().MilliCPU) * scheduler.MaxNodeScore / allocatable
	}
	return (free + int64(maxPods-node.PodCount())) / 2, nil
}
