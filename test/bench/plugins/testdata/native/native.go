// Package native implements the logic of package portable with the framework of 1.24.
package native

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Name is the plugin's name in the configuration.
const Name = "FewestPodsNative"

const maxPods = 100

// FewestPods rejects nodes with many pods, and prefers nodes with few pods and free CPU.
type FewestPods struct {
	handle framework.Handle
	full   *framework.Status
}

// New makes the plugin.
func New(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	return &FewestPods{handle: handle, full: framework.NewStatus(framework.Unschedulable, "too many pods")}, nil
}

// Name returns the constant.
func (*FewestPods) Name() string { return Name }

// Filter rejects full nodes.
func (f *FewestPods) Filter(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, node *framework.NodeInfo) *framework.Status {
	if len(node.Pods) >= maxPods {
		return f.full
	}
	return nil
}

// Score is the mean of free room for pods and free CPU.
func (f *FewestPods) Score(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, name string) (int64, *framework.Status) {
	node, err := f.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return 0, framework.AsStatus(fmt.Errorf("get node %s: %w", name, err))
	}
	free := int64(0)
	if node.Allocatable.MilliCPU > 0 {
		free = (node.Allocatable.MilliCPU - node.Requested.MilliCPU) * framework.MaxNodeScore / node.Allocatable.MilliCPU
	}
	return (free + int64(maxPods-len(node.Pods))) / 2, nil
}

// ScoreExtensions returns nil, since the scores need no normalization.
func (*FewestPods) ScoreExtensions() framework.ScoreExtensions { return nil }
