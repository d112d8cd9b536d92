//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PreFilter calls the plugin.
func (p *PreFilterPoint) PreFilter(ctx context.Context, s *framework.CycleState, pod *corev1.Pod) (*framework.PreFilterResult, *framework.Status) {
	result, status := p.Plugin.PreFilter(ctx, state{s}, pod)
	status = p.Host.afterPreFilter(s, nil, status)
	if result == nil {
		return nil, fromPlugin(status)
	}
	return &framework.PreFilterResult{NodeNames: sets.NewString(result.Nodes...)}, fromPlugin(status)
}
