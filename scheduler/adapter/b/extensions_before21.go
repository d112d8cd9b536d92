//go:build pmksched

package b

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func (p *preFilterExtensions) AddPod(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, other *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	return p.addPod(ctx, s, pod, other, n)
}

func (p *preFilterExtensions) RemovePod(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, other *corev1.Pod, n *framework.NodeInfo) *framework.Status {
	return p.removePod(ctx, s, pod, other, n)
}
