package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreEnqueuePoint is the extension point PreEnqueue.
type PreEnqueuePoint struct {
	Host   *Host
	Plugin scheduler.PreEnqueuePlugin
}

var _ preEnqueuePlugin = &struct {
	Base
	PreEnqueuePoint
}{}

// PreEnqueue calls the plugin.
func (p *PreEnqueuePoint) PreEnqueue(ctx context.Context, pod *corev1.Pod) (result *status) {
	defer p.Host.recoverFrom("PreEnqueue", pod, &result)
	if isResized(pod) {
		return nil
	}
	return fromPlugin(p.Plugin.PreEnqueue(ctx, pod))
}
