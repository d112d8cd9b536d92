package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreFilterPoint is the extension point PreFilter.
type PreFilterPoint struct {
	Host   *Host
	Plugin scheduler.PreFilterPlugin
}

// PreFilterExtensions returns nil if the plugin does not implement scheduler.PreFilterExtensions.
func (p *PreFilterPoint) PreFilterExtensions() preFilterExtensions { //nolint:revive // an alias of the framework's type
	if _, ok := p.Plugin.(scheduler.PreFilterExtensions); !ok {
		return nil
	}
	return (*extensions)(p)
}

type extensions PreFilterPoint

func (p *extensions) AddPod(ctx context.Context, s cycleState, pod *corev1.Pod, other otherPod, n nodeInfo) *status {
	if p.Host.skips.filter(s) {
		return nil
	}
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).AddPod(ctx, stateOf(s), pod, podOfOther(other), nodeOf(n)))
}

func (p *extensions) RemovePod(ctx context.Context, s cycleState, pod *corev1.Pod, other otherPod, n nodeInfo) *status {
	if p.Host.skips.filter(s) {
		return nil
	}
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).RemovePod(ctx, stateOf(s), pod, podOfOther(other), nodeOf(n)))
}

// FilterPoint is the extension point Filter.
type FilterPoint struct {
	Host   *Host
	Plugin scheduler.FilterPlugin
}

// Filter calls the plugin.
func (p *FilterPoint) Filter(ctx context.Context, s cycleState, pod *corev1.Pod, n nodeInfo) *status {
	if decided, result := p.Host.skips.node(s, n); decided {
		return result
	}
	return fromPlugin(p.Plugin.Filter(ctx, stateOf(s), pod, nodeOf(n)))
}

// PostFilterPoint is the extension point PostFilter.
type PostFilterPoint struct {
	Host   *Host
	Plugin scheduler.PostFilterPlugin
}

// PostFilter calls the plugin.
func (p *PostFilterPoint) PostFilter(ctx context.Context, s cycleState, pod *corev1.Pod, rejected nodeStatuses) (*postFilterResult, *status) {
	nominated, result := p.Plugin.PostFilter(ctx, stateOf(s), pod, rejections{rejected})
	if nominated == "" {
		return nil, fromPlugin(result)
	}
	return nominate(nominated), fromPlugin(result)
}

// rejections implements scheduler.Rejections.
type rejections struct{ nodes nodeStatuses }
