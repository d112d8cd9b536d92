package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

var _ fwk.SignPlugin = &struct {
	Base
	SignPoint
}{}

// SignPod calls the plugin. The fragment is named after it, so that it differs from the fragments
// of other plugins.
func (p *SignPoint) SignPod(ctx context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *status) {
	part, result := p.Plugin.Sign(ctx, pod)
	if !result.IsSuccess() {
		return nil, fromPlugin(result)
	}
	return []fwk.SignFragment{{Key: p.Plugin.Name(), Value: part}}, nil
}
