package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// preFlight calls the plugin. Without the method, PreBind has work to do for every pod.
func (p *PreBindPoint) preFlight(ctx context.Context, s cycleState, pod *corev1.Pod, node string) *status {
	if plugin, ok := p.Plugin.(scheduler.PreBindPreFlighter); ok {
		return fromPlugin(plugin.PreBindPreFlight(ctx, stateOf(s), pod, node))
	}
	return nil
}
