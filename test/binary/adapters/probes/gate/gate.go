// Package gate is a portable plugin with the extension point that only releases from 1.26 on have.
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

// New returns the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Gate, error) { return &Gate{}, nil }

// Name returns the plugin's name.
func (g *Gate) Name() string { return Name }

// PreEnqueue rejects pods with the label gated.
func (g *Gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *scheduler.Status {
	if _, gated := pod.Labels["gated"]; gated {
		return scheduler.Unresolvable("gated")
	}
	return nil
}
