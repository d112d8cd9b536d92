// Package unsigned is a plugin that accepts every node and does not sign pods.
package unsigned

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the configuration.
const Name = "Unsigned"

// Unsigned accepts every node.
type Unsigned struct{}

// New returns the plugin.
func New(context.Context, scheduler.Arguments, scheduler.Handle) (*Unsigned, error) {
	return &Unsigned{}, nil
}

// Name returns the constant.
func (*Unsigned) Name() string { return Name }

// Filter accepts the node.
func (*Unsigned) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	return nil
}
