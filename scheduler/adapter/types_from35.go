package adapter

import (
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
