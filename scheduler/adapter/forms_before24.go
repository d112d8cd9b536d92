//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// logSink writes to klog: contexts have no logger before 1.24.
type logSink struct{}

func (logSink) Enabled(_ context.Context, level int) bool {
	return klog.V(klog.Level(level)).Enabled()
}

func (logSink) Info(_ context.Context, level int, message string, keysAndValues []interface{}) {
	klog.V(klog.Level(level)).InfoS(message, keysAndValues...)
}

func (logSink) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	klog.ErrorS(err, message, keysAndValues...)
}

// PreFilter calls the plugin. The framework does not take a set of nodes from PreFilter:
// FilterPoint or NodeSetPoint enforces it.
func (p *PreFilterPoint) PreFilter(ctx context.Context, s cycleState, pod *corev1.Pod) (result *status) {
	defer p.Host.recoverFrom("PreFilter", pod, &result)
	nodes, answer := p.call(ctx, s, pod)
	return fromPlugin(p.Host.skips.afterPreFilter(s, nodes, answer))
}

// NodeSetPoint is the extension point Filter of a plugin that implements PreFilter but not Filter.
type NodeSetPoint struct {
	Host   *Host
	Plugin scheduler.PreFilterPlugin
}

// Filter rejects nodes that are not in PreFilter's result.
func (p *NodeSetPoint) Filter(_ context.Context, s cycleState, _ *corev1.Pod, n nodeInfo) *status {
	_, result := p.Host.skips.node(s, n)
	return result
}
