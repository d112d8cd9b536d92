//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PostFilter calls the plugin.
func (p *PostFilterPoint) PostFilter(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, rejected framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	nominated, status := p.Plugin.PostFilter(ctx, state{s}, pod, rejections{rejected})
	if nominated == "" {
		return nil, fromPlugin(status)
	}
	return nominate(nominated), fromPlugin(status)
}

type rejections struct{ nodes framework.NodeToStatusMap }

// Status is Unresolvable of a node that is not in the map, which is what the framework takes it for.
func (r rejections) Status(node string) *scheduler.Status {
	if status, ok := r.nodes[node]; ok {
		return toPlugin(status)
	}
	return scheduler.Unresolvable()
}
