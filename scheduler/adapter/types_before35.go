//go:build ignore

package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Types that moved to k8s.io/kube-scheduler/framework in 1.35.
type (
	handle              = framework.Handle
	nodeScoreList       = framework.NodeScoreList
	postFilterResult    = framework.PostFilterResult
	preFilterExtensions = framework.PreFilterExtensions
	scoreExtensions     = framework.ScoreExtensions
	waitingPod          = framework.WaitingPod
)

// Plugin is the framework's interface of all plugins.
type Plugin = framework.Plugin

var (
	_ framework.QueueSortPlugin  = &allPoints{}
	_ framework.PreFilterPlugin  = &allPoints{}
	_ framework.FilterPlugin     = &allPoints{}
	_ framework.PostFilterPlugin = &allPoints{}
	_ framework.PreScorePlugin   = &allPoints{}
	_ framework.ScorePlugin      = &allPoints{}
	_ framework.ReservePlugin    = &allPoints{}
	_ framework.PermitPlugin     = &allPoints{}
	_ framework.PreBindPlugin    = &allPoints{}
	_ framework.BindPlugin       = &allPoints{}
	_ framework.PostBindPlugin   = &allPoints{}
)
