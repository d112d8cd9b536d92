//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreFilter calls the plugin. The framework knows no set of nodes to look at yet: Filter sees to it.
func (p *PreFilterPoint) PreFilter(ctx context.Context, s *framework.CycleState, pod *corev1.Pod) *framework.Status {
	result, status := p.Plugin.PreFilter(ctx, state{s}, pod)
	return fromPlugin(p.Host.afterPreFilter(s, result, status))
}

// NodeSetPoint is the extension point Filter of a plugin that has PreFilter and no Filter.
type NodeSetPoint struct {
	Host   *Host
	Plugin scheduler.PreFilterPlugin
}

var _ framework.FilterPlugin = &struct {
	Base
	NodeSetPoint
}{}

// Filter rejects nodes that PreFilter did not name.
func (p *NodeSetPoint) Filter(_ context.Context, s *framework.CycleState, _ *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	_, status := p.Host.beforeFilter(s, n)
	return status
}
