//go:build pmksched

package c

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PostFilter calls the plugin.
func (p *PostFilterPoint) PostFilter(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, rejected framework.NodeToStatusReader) (*framework.PostFilterResult, *framework.Status) {
	nominated, status := p.Plugin.PostFilter(ctx, state{s}, pod, rejections{rejected})
	if nominated == "" {
		return nil, fromPlugin(status)
	}
	info := &framework.NominatingInfo{NominatedNodeName: nominated, NominatingMode: framework.ModeOverride}
	return &framework.PostFilterResult{NominatingInfo: info}, fromPlugin(status)
}

type rejections struct{ nodes framework.NodeToStatusReader }

func (r rejections) Status(node string) *scheduler.Status { return toPlugin(r.nodes.Get(node)) }
