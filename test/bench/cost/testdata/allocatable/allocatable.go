// Package allocatable makes NodeResourcesAllocatable of scheduler-plugins, whose constructor is not called New, a package that a build accepts.
package allocatable

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesources"
)

// Name is the plugin's name in the configuration.
const Name = "NodeResourcesAllocatable"

// Allocatable is the plugin.
type Allocatable struct{ *noderesources.Allocatable }

// New makes the plugin.
func New(ctx context.Context, args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	made, err := noderesources.NewAllocatable(ctx, args, handle)
	if err != nil {
		return nil, err
	}
	plugin, ok := made.(*noderesources.Allocatable)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", Name, made)
	}
	return &Allocatable{plugin}, nil
}

// Score is a method of this package, so that a build finds the extension point.
func (a *Allocatable) Score(ctx context.Context, state *framework.CycleState, pod *corev1.Pod, node *framework.NodeInfo) (int64, *framework.Status) {
	return a.Allocatable.Score(ctx, state, pod, node)
}
