package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func (p *PreFilterPoint) preFilter(ctx context.Context, s cycleState, pod *corev1.Pod) (*preFilterResult, *status) {
	nodes, result := p.Plugin.PreFilter(ctx, stateOf(s), pod)
	result = p.Host.skips.afterPreFilter(s, nil, result)
	if nodes == nil {
		return nil, fromPlugin(result)
	}
	// sets.String before 1.28, then sets.Set[string]: both are this map.
	names := make(map[string]sets.Empty, len(nodes.Nodes))
	for _, name := range nodes.Nodes {
		names[name] = sets.Empty{}
	}
	return &preFilterResult{NodeNames: names}, fromPlugin(result)
}
