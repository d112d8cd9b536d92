//go:build pmksched

package e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
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

// PreFilter calls the plugin. The nodes are those of Host.Nodes.
func (p *PreFilterPoint) PreFilter(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*framework.PreFilterResult, *fwk.Status) {
	result, status := p.Plugin.PreFilter(ctx, stateOf(s), pod)
	if result == nil {
		return nil, fromPlugin(status)
	}
	return &framework.PreFilterResult{NodeNames: sets.New(result.Nodes...)}, fromPlugin(status)
}

// PreFilterExtensions returns nil if the plugin has none.
func (p *PreFilterPoint) PreFilterExtensions() framework.PreFilterExtensions {
	if _, ok := p.Plugin.(scheduler.PreFilterExtensions); !ok {
		return nil
	}
	return (*preFilterExtensions)(p)
}

type preFilterExtensions PreFilterPoint

func (p *preFilterExtensions) AddPod(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, other fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).AddPod(ctx, stateOf(s), pod, other.GetPod(), nodeOf(n)))
}

func (p *preFilterExtensions) RemovePod(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, other fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return fromPlugin(p.Plugin.(scheduler.PreFilterExtensions).RemovePod(ctx, stateOf(s), pod, other.GetPod(), nodeOf(n)))
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
func (p *FilterPoint) Filter(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, n fwk.NodeInfo) *fwk.Status {
	return fromPlugin(p.Plugin.Filter(ctx, stateOf(s), pod, nodeOf(n)))
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

// PostFilter calls the plugin.
func (p *PostFilterPoint) PostFilter(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, rejected framework.NodeToStatusReader) (*framework.PostFilterResult, *fwk.Status) {
	nominated, status := p.Plugin.PostFilter(ctx, stateOf(s), pod, rejections{rejected})
	if nominated == "" {
		return nil, fromPlugin(status)
	}
	info := &framework.NominatingInfo{NominatedNodeName: nominated, NominatingMode: framework.ModeOverride}
	return &framework.PostFilterResult{NominatingInfo: info}, fromPlugin(status)
}

type rejections struct{ nodes framework.NodeToStatusReader }

func (r rejections) Status(node string) *scheduler.Status { return toPlugin(r.nodes.Get(node)) }
