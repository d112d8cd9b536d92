package adapter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreFilterPoint is the extension point PreFilter.
type PreFilterPoint struct {
	Host   *Host
	Plugin scheduler.PreFilterPlugin
}

// call calls the plugin for a pod that needs a node.
func (p *PreFilterPoint) call(ctx context.Context, s cycleState, pod *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status) {
	if isResized(pod) {
		return nil, scheduler.Skip()
	}
	return p.Plugin.PreFilter(ctx, stateOf(s), pod)
}

// isResized reports whether a pod in the queue runs already, so that portable plugins must not
// reject it: they have decided about it before. From 1.37 on, with the feature gate
// InPlacePodVerticalScalingSchedulerPreemption, the scheduler makes room on the node of a pod whose
// resize the kubelet has deferred, and rejects its other nodes
// (pkg/scheduler/framework/plugins/deferredpodscheduling). In 1.37 no such pod reaches Reserve: the
// cache refuses to assume a pod that it has (pkg/scheduler/backend/cache/cache.go).
func isResized(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// PreFilterExtensions returns nil if the plugin does not implement scheduler.PreFilterExtensions.
func (p *PreFilterPoint) PreFilterExtensions() preFilterExtensions { //nolint:revive // an alias of the framework's type
	if _, ok := p.Plugin.(scheduler.PreFilterExtensions); !ok {
		return nil
	}
	return (*extensions)(p)
}

type extensions PreFilterPoint

func (p *extensions) AddPod(
	ctx context.Context, s cycleState, pod *corev1.Pod, other otherPod, n nodeInfo,
) (result *status) {
	defer p.Host.recoverFrom("AddPod", pod, &result)
	if p.Host.skips.filter(s) {
		return nil
	}
	plugin := p.Plugin.(scheduler.PreFilterExtensions)
	return fromPlugin(plugin.AddPod(ctx, stateOf(s), pod, podOfOther(other), nodeOf(n)))
}

func (p *extensions) RemovePod(
	ctx context.Context, s cycleState, pod *corev1.Pod, other otherPod, n nodeInfo,
) (result *status) {
	defer p.Host.recoverFrom("RemovePod", pod, &result)
	if p.Host.skips.filter(s) {
		return nil
	}
	plugin := p.Plugin.(scheduler.PreFilterExtensions)
	return fromPlugin(plugin.RemovePod(ctx, stateOf(s), pod, podOfOther(other), nodeOf(n)))
}

// FilterPoint is the extension point Filter.
type FilterPoint struct {
	Host   *Host
	Plugin scheduler.FilterPlugin
}

// Filter calls the plugin.
func (p *FilterPoint) Filter(ctx context.Context, s cycleState, pod *corev1.Pod, n nodeInfo) (result *status) {
	defer p.Host.recoverFrom("Filter", pod, &result)
	if decided, result := p.Host.skips.node(s, n); decided || isResized(pod) {
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
func (p *PostFilterPoint) PostFilter(
	ctx context.Context, s cycleState, pod *corev1.Pod, rejected nodeStatuses,
) (_ *postFilterResult, result *status) {
	defer p.Host.recoverFrom("PostFilter", pod, &result)
	if isResized(pod) {
		return nil, newStatus(unschedulable)
	}
	node, answer := p.Plugin.PostFilter(ctx, stateOf(s), pod, rejections{rejected})
	if node == "" {
		return nil, fromPlugin(answer)
	}
	return nominate(node), fromPlugin(answer)
}

// rejections implements scheduler.Rejections.
type rejections struct{ nodes nodeStatuses }

// PreScorePoint is the extension point PreScore.
type PreScorePoint struct {
	Host   *Host
	Plugin scheduler.PreScorePlugin
}

// ScorePoint is the extension point Score.
type ScorePoint struct {
	Host   *Host
	Plugin scheduler.ScorePlugin
}

// ScoreExtensions returns nil if the plugin does not implement scheduler.ScoreNormalizer.
func (p *ScorePoint) ScoreExtensions() scoreExtensions { //nolint:revive // an alias of the framework's type
	if _, ok := p.Plugin.(scheduler.ScoreNormalizer); !ok {
		return nil
	}
	return (*normalizer)(p)
}

type normalizer ScorePoint

// NormalizeScore calls the plugin with a copy of the list and copies the scores back.
func (p *normalizer) NormalizeScore(
	ctx context.Context, s cycleState, pod *corev1.Pod, list nodeScoreList,
) (result *status) {
	defer p.Host.recoverFrom("NormalizeScore", pod, &result)
	if p.Host.skips.score(s) {
		return nil
	}
	scores := make([]scheduler.NodeScore, len(list))
	for i := range list {
		scores[i] = scheduler.NodeScore{Name: list[i].Name, Score: list[i].Score}
	}
	answer := p.Plugin.(scheduler.ScoreNormalizer).NormalizeScore(ctx, stateOf(s), pod, scores)
	for i := range list {
		list[i].Score = p.Host.bounded(scores[i].Score)
	}
	return fromPlugin(answer)
}

// ReservePoint is the extension point Reserve.
type ReservePoint struct {
	Host   *Host
	Plugin scheduler.ReservePlugin
}

// Reserve calls the plugin.
func (p *ReservePoint) Reserve(ctx context.Context, s cycleState, pod *corev1.Pod, node string) (result *status) {
	defer p.Host.recoverFrom("Reserve", pod, &result)
	return fromPlugin(p.Plugin.Reserve(ctx, stateOf(s), pod, node))
}

// Unreserve calls the plugin.
func (p *ReservePoint) Unreserve(ctx context.Context, s cycleState, pod *corev1.Pod, node string) {
	defer p.Host.recoverFrom("Unreserve", pod, nil)
	p.Plugin.Unreserve(ctx, stateOf(s), pod, node)
}

// PermitPoint is the extension point Permit.
type PermitPoint struct {
	Host   *Host
	Plugin scheduler.PermitPlugin
}

// Permit calls the plugin.
func (p *PermitPoint) Permit(
	ctx context.Context, s cycleState, pod *corev1.Pod, node string,
) (result *status, timeout time.Duration) {
	defer p.Host.recoverFrom("Permit", pod, &result)
	answer, timeout := p.Plugin.Permit(ctx, stateOf(s), pod, node)
	return fromPlugin(answer), timeout
}

// PreBindPoint is the extension point PreBind.
type PreBindPoint struct {
	Host   *Host
	Plugin scheduler.PreBindPlugin
}

// PreBind calls the plugin.
func (p *PreBindPoint) PreBind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) (result *status) {
	defer p.Host.recoverFrom("PreBind", pod, &result)
	return fromPlugin(p.Plugin.PreBind(ctx, stateOf(s), pod, node))
}

// BindPoint is the extension point Bind.
type BindPoint struct {
	Host   *Host
	Plugin scheduler.BindPlugin
}

// Bind calls the plugin.
func (p *BindPoint) Bind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) (result *status) {
	defer p.Host.recoverFrom("Bind", pod, &result)
	return fromPlugin(p.Plugin.Bind(ctx, stateOf(s), pod, node))
}

// PostBindPoint is the extension point PostBind.
type PostBindPoint struct {
	Host   *Host
	Plugin scheduler.PostBindPlugin
}

// PostBind calls the plugin.
func (p *PostBindPoint) PostBind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) {
	defer p.Host.recoverFrom("PostBind", pod, nil)
	p.Plugin.PostBind(ctx, stateOf(s), pod, node)
}

// QueueSortPoint is the extension point QueueSort.
type QueueSortPoint struct {
	Host   *Host
	Plugin scheduler.QueueSortPlugin
}

// Less calls the plugin. If the plugin panics, it orders the pods as PrioritySort does.
func (p *QueueSortPoint) Less(a, b queuedPodInfo) bool {
	x, y := queuedPod(a), queuedPod(b)
	if less, ok := p.less(x, y); ok {
		return less
	}
	return x.Priority > y.Priority || x.Priority == y.Priority && x.Timestamp.Before(y.Timestamp)
}

func (p *QueueSortPoint) less(a, b scheduler.QueuedPod) (less, ok bool) {
	defer p.Host.recoverFrom("QueueSort", a.Pod, nil)
	return p.Plugin.Less(a, b), true
}

// SignPoint is the framework's SignPlugin from 1.35 on. It has no effect before.
type SignPoint struct {
	Host   *Host
	Plugin scheduler.SignPlugin
}

// Sign calls the plugin. The framework does not call it.
func (p *SignPoint) Sign(ctx context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return p.Plugin.Sign(ctx, pod)
}
