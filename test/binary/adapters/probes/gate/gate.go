// Package gate is a portable plugin with the extension point that releases have from 1.26 on only.
package gate

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name.
const Name = "Gate"

// Gate keeps pods with a label out of the queue.
type Gate struct{}

// New makes the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Gate, error) { return &Gate{}, nil }

// Name returns the plugin's name.
func (g *Gate) Name() string { return Name }

// PreEnqueue keeps pods with the label gated out.
func (g *Gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *scheduler.Status {
	if _, gated := pod.Labels["gated"]; gated {
		return scheduler.Unresolvable("gated")
	}
	return nil
}
