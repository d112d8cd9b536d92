//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreFilterPoint is the extension point PreFilter.
type PreFilterPoint struct {
	Host   *Host
	Plugin scheduler.PreFilterPlugin
}

var _ framework.PreFilterPlugin = &struct {
	Base
	PreFilterPoint
}{}

// PreFilterExtensions returns nil if the plugin has none.
func (p *PreFilterPoint) PreFilterExtensions() framework.PreFilterExtensions {
	if _, ok := p.Plugin.(scheduler.PreFilterExtensions); !ok {
		return nil
	}
	return (*preFilterExtensions)(p)
}

type preFilterExtensions PreFilterPoint

func (p *preFilterExtensions) addPod(ctx context.Context, s *framework.CycleState, pod, other *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	if p.Host.filterLeftOut(s) {
		return nil
	}
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).AddPod(ctx, state{s}, pod, other, node{n}))
}

func (p *preFilterExtensions) removePod(ctx context.Context, s *framework.CycleState, pod, other *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	if p.Host.filterLeftOut(s) {
		return nil
	}
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).RemovePod(ctx, state{s}, pod, other, node{n}))
}

// FilterPoint is the extension point Filter.
type FilterPoint struct {
	Host   *Host
	Plugin scheduler.FilterPlugin
}

var _ framework.FilterPlugin = &struct {
	Base
	FilterPoint
}{}

// Filter calls the plugin.
func (p *FilterPoint) Filter(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	if decided, status := p.Host.beforeFilter(s, n); decided {
		return status
	}
	return fromPlugin(p.Plugin.Filter(ctx, state{s}, pod, node{n}))
}

// PostFilterPoint is the extension point PostFilter.
type PostFilterPoint struct {
	Host   *Host
	Plugin scheduler.PostFilterPlugin
}

var _ framework.PostFilterPlugin = &struct {
	Base
	PostFilterPoint
}{}
