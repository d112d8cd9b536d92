// Package noop is a portable plugin without effect that has every extension point of every release
// but QueueSort, of which a scheduler has one.
package noop

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name.
const Name = "Noop"

// Noop accepts everything and prefers nothing.
type Noop struct{}

// New returns the plugin, and prints a line by which the tests know that it was called.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Noop, error) {
	fmt.Fprintln(os.Stderr, "Noop started")
	return &Noop{}, nil
}

// Name returns the plugin's name.
func (*Noop) Name() string { return Name }

// EventsToRegister returns one event, which helps no pod: without events, every event would.
func (*Noop) EventsToRegister() []scheduler.ClusterEvent {
	never := func(*corev1.Pod, interface{}, interface{}) bool { return false }
	return []scheduler.ClusterEvent{{Resource: scheduler.EventNode, Action: scheduler.ActionAdd, Helps: never}}
}

// PreFilter restricts no node.
func (*Noop) PreFilter(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	return nil, nil
}

// AddPod has no state to change.
func (*Noop) AddPod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}

// RemovePod has no state to change.
func (*Noop) RemovePod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod,
	scheduler.NodeInfo) *scheduler.Status {
	return nil
}

// Filter accepts the node.
func (*Noop) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}

// PostFilter leaves the pod to other plugins.
func (*Noop) PostFilter(context.Context, scheduler.State, *corev1.Pod,
	scheduler.Rejections) (string, *scheduler.Status) {
	return "", scheduler.Unschedulable()
}

// PreScore prepares nothing.
func (*Noop) PreScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeInfo) *scheduler.Status {
	return nil
}

// Score is the same for every node.
func (*Noop) Score(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) (int64, *scheduler.Status) {
	return 0, nil
}

// NormalizeScore changes nothing.
func (*Noop) NormalizeScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeScore) *scheduler.Status {
	return nil
}

// Reserve reserves nothing.
func (*Noop) Reserve(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return nil
}

// Unreserve undoes nothing.
func (*Noop) Unreserve(context.Context, scheduler.State, *corev1.Pod, string) {}

// Permit lets the pod continue.
func (*Noop) Permit(context.Context, scheduler.State, *corev1.Pod, string) (*scheduler.Status, time.Duration) {
	return nil, 0
}

// PreBind does nothing.
func (*Noop) PreBind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return nil
}

// PreBindPreFlight says that PreBind has nothing to do.
func (*Noop) PreBindPreFlight(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return scheduler.Skip()
}

// Bind leaves the pod to other plugins.
func (*Noop) Bind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	return scheduler.Skip()
}

// PostBind does nothing.
func (*Noop) PostBind(context.Context, scheduler.State, *corev1.Pod, string) {}

// Sign says that no result depends on the pod.
func (*Noop) Sign(context.Context, *corev1.Pod) (interface{}, *scheduler.Status) { return nil, nil }
