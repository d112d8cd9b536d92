//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreScore calls the plugin with what the snapshot has of the nodes.
func (p *PreScorePoint) PreScore(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, objects []*corev1.Node) *framework.Status {
	nodes := make([]scheduler.NodeInfo, len(objects))
	for i := range objects {
		n, err := p.Host.Nodes().Get(objects[i].Name)
		if err != nil {
			return framework.AsStatus(err)
		}
		nodes[i] = n
	}
	return fromPlugin(p.Host.afterPreScore(s, p.Plugin.PreScore(ctx, state{s}, pod, nodes)))
}
