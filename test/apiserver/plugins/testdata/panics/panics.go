// Package panics is a broken plugin: it panics over a pod at the extension point in the pod's
// label.
package panics

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the configuration.
const Name = "Panics"

// Panics is the plugin.
type Panics struct{}

// New makes the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Panics, error) {
	return &Panics{}, nil
}

// Name returns the constant.
func (*Panics) Name() string { return Name }

func panicAt(point string, pod *corev1.Pod) {
	if pod.Labels["panic"] == point {
		panic("broken at " + point)
	}
}

// PreFilter runs in the scheduling cycle's own goroutine.
func (*Panics) PreFilter(_ context.Context, _ scheduler.State, pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	panicAt("preFilter", pod)
	return nil, nil
}

// Filter runs in one of several goroutines of the cycle.
func (*Panics) Filter(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ scheduler.NodeInfo) *scheduler.Status {
	panicAt("filter", pod)
	return nil
}

// PreBind runs in the goroutine of the binding.
func (*Panics) PreBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) *scheduler.Status {
	panicAt("preBind", pod)
	return nil
}

// PostBind runs there too, when the pod is bound.
func (*Panics) PostBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	panicAt("postBind", pod)
}
