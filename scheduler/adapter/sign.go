package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// SignPoint is the framework's SignPlugin from 1.35 on. It has no effect before.
type SignPoint struct {
	Host   *Host
	Plugin scheduler.SignPlugin
}

// Sign calls the plugin. The framework does not call it.
func (p *SignPoint) Sign(ctx context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return p.Plugin.Sign(ctx, pod)
}
