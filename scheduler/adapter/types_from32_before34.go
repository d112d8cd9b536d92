//go:build ignore

package adapter

import "k8s.io/kubernetes/pkg/scheduler/framework"

type (
	eventResource  = framework.EventResource
	queueingHint   = framework.QueueingHint
	queueingHintFn = framework.QueueingHintFn
)

const (
	queue     = framework.Queue
	queueSkip = framework.QueueSkip

	podResource = framework.Pod
	podShrinks  = framework.UpdatePodScaleDown
	podEdits    = framework.UpdatePodLabel | framework.UpdatePodScaleDown | framework.UpdatePodSchedulingGatesEliminated |
		tolerations
)
