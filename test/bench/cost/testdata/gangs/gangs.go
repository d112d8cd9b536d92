// Package gangs makes Coscheduling of scheduler-plugins a plugin of another name, so that it can be compiled in together with the bundled one.
package gangs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

// Name is the plugin's name in the configuration.
const Name = "NativeCoscheduling"

// permitWaitingTime is the default of the plugin, in seconds.
const permitWaitingTime = 60

// Gangs is the plugin.
type Gangs struct{ *coscheduling.Coscheduling }

// New makes the plugin with its default arguments: the scheduler decodes them by the plugin's own name only.
func New(ctx context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	made, err := coscheduling.New(ctx, &config.CoschedulingArgs{PermitWaitingTimeSeconds: permitWaitingTime}, handle)
	if err != nil {
		return nil, err
	}
	plugin, ok := made.(*coscheduling.Coscheduling)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", Name, made)
	}
	return &Gangs{plugin}, nil
}

// A build finds the extension points by the methods that this package declares.

// PreFilter calls the plugin.
func (g *Gangs) PreFilter(ctx context.Context, state *framework.CycleState, pod *corev1.Pod) (*framework.PreFilterResult, *framework.Status) {
	return g.Coscheduling.PreFilter(ctx, state, pod)
}

// PostFilter calls the plugin.
func (g *Gangs) PostFilter(ctx context.Context, state *framework.CycleState, pod *corev1.Pod, nodes framework.NodeToStatusReader) (*framework.PostFilterResult, *framework.Status) {
	return g.Coscheduling.PostFilter(ctx, state, pod, nodes)
}

// Reserve calls the plugin.
func (g *Gangs) Reserve(ctx context.Context, state *framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	return g.Coscheduling.Reserve(ctx, state, pod, node)
}

// Permit calls the plugin.
func (g *Gangs) Permit(ctx context.Context, state *framework.CycleState, pod *corev1.Pod, node string) (*framework.Status, time.Duration) {
	return g.Coscheduling.Permit(ctx, state, pod, node)
}
