package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreBindPreFlight calls the plugin. Without a result, PreBind does not run in parallel with the
// PreBind of other plugins, as in earlier releases.
func (p *PreBindPoint) PreBindPreFlight(ctx context.Context, s cycleState, pod *corev1.Pod,
	node string) (*fwk.PreBindPreFlightResult, *status) {
	return nil, p.preFlight(ctx, s, pod, node)
}
