package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// logSink writes to the context's logger, which may name the pod, or else to klog.
type logSink struct{}

// callDepth skips logSink and scheduler.Logger, so that a line names the plugin's source file.
const callDepth = 2

func (logSink) Enabled(ctx context.Context, level int) bool {
	return klog.FromContext(ctx).V(level).Enabled()
}

func (logSink) Info(ctx context.Context, level int, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(callDepth).V(level).Info(message, keysAndValues...)
}

func (logSink) Error(ctx context.Context, err error, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(callDepth).Error(err, message, keysAndValues...)
}

func (p *PreFilterPoint) preFilter(
	ctx context.Context, s cycleState, pod *corev1.Pod,
) (_ *preFilterResult, result *status) {
	defer p.Host.recoverFrom("PreFilter", pod, &result)
	nodes, answer := p.call(ctx, s, pod)
	answer = p.Host.skips.afterPreFilter(s, nil, answer)
	if nodes == nil {
		return nil, fromPlugin(answer)
	}
	// sets.String before 1.28, then sets.Set[string]: both are this map.
	names := make(map[string]sets.Empty, len(nodes.Nodes))
	for _, name := range nodes.Nodes {
		names[name] = sets.Empty{}
	}
	return &preFilterResult{NodeNames: names}, fromPlugin(answer)
}
