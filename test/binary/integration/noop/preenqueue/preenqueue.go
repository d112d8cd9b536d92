// Package preenqueue is the plugin noop with the extension point that releases have from 1.26 on.
package preenqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"example.com/noop"
	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name.
const Name = noop.Name

// Noop accepts everything and prefers nothing.
type Noop struct{ noop.Noop }

// New returns the plugin.
func New(ctx context.Context, args scheduler.Arguments, handle scheduler.Handle) (*Noop, error) {
	p, err := noop.New(ctx, args, handle)
	if err != nil {
		return nil, err
	}
	return &Noop{*p}, nil
}

// PreEnqueue lets the pod into the queue.
func (*Noop) PreEnqueue(context.Context, *corev1.Pod) *scheduler.Status { return nil }
