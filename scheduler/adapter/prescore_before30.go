//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreScore calls the plugin with the snapshot's nodes of these names.
func (p *PreScorePoint) PreScore(
	ctx context.Context, s cycleState, pod *corev1.Pod, objects []*corev1.Node,
) (result *status) {
	defer p.Host.recoverFrom("PreScore", pod, &result)
	nodes := make([]scheduler.NodeInfo, len(objects))
	for i := range objects {
		n, err := p.Host.Nodes().Get(objects[i].Name)
		if err != nil {
			return asStatus(err)
		}
		nodes[i] = n
	}
	return fromPlugin(p.Host.skips.afterPreScore(s, p.Plugin.PreScore(ctx, stateOf(s), pod, nodes)))
}
