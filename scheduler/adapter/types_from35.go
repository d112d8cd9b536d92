package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Types that moved to k8s.io/kube-scheduler/framework in 1.35.
type (
	enqueueExtensions   = fwk.EnqueueExtensions
	preEnqueuePlugin    = fwk.PreEnqueuePlugin
	handle              = fwk.Handle
	nodeScoreList       = fwk.NodeScoreList
	nodeStatuses        = fwk.NodeToStatusReader
	postFilterResult    = fwk.PostFilterResult
	preFilterExtensions = fwk.PreFilterExtensions
	preFilterResult     = fwk.PreFilterResult
	scoreExtensions     = fwk.ScoreExtensions
	waitingPod          = fwk.WaitingPod
)

// Plugin is the framework's interface of all plugins.
type Plugin = fwk.Plugin

var (
	_ fwk.QueueSortPlugin  = &allPoints{}
	_ fwk.PreFilterPlugin  = &allPoints{}
	_ fwk.FilterPlugin     = &allPoints{}
	_ fwk.PostFilterPlugin = &allPoints{}
	_ fwk.PreScorePlugin   = &allPoints{}
	_ fwk.ScorePlugin      = &allPoints{}
	_ fwk.ReservePlugin    = &allPoints{}
	_ fwk.PermitPlugin     = &allPoints{}
	_ fwk.PreBindPlugin    = &allPoints{}
	_ fwk.BindPlugin       = &allPoints{}
	_ fwk.PostBindPlugin   = &allPoints{}
)

var _ fwk.SignPlugin = &struct {
	Base
	SignPoint
}{}

// SignPod calls the plugin. The fragment is named after it, so that it differs from the fragments
// of other plugins.
func (p *SignPoint) SignPod(ctx context.Context, pod *corev1.Pod) (_ []fwk.SignFragment, result *status) {
	defer p.Host.recoverFrom("Sign", pod, &result)
	part, answer := p.Plugin.Sign(ctx, pod)
	if !answer.IsSuccess() {
		return nil, fromPlugin(answer)
	}
	return []fwk.SignFragment{{Key: p.Plugin.Name(), Value: part}}, nil
}
