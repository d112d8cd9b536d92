//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreEnqueuePoint is the extension point PreEnqueue.
type PreEnqueuePoint struct {
	Host   *Host
	Plugin scheduler.PreEnqueuePlugin
}

var _ framework.PreEnqueuePlugin = &struct {
	Base
	PreEnqueuePoint
}{}

// PreEnqueue calls the plugin.
func (p *PreEnqueuePoint) PreEnqueue(ctx context.Context, pod *corev1.Pod) *framework.Status {
	return fromPlugin(p.Plugin.PreEnqueue(ctx, pod))
}
