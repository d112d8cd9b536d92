package adapter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// ReservePoint is the extension point Reserve.
type ReservePoint struct {
	Host   *Host
	Plugin scheduler.ReservePlugin
}

// Reserve calls the plugin.
func (p *ReservePoint) Reserve(ctx context.Context, s cycleState, pod *corev1.Pod, node string) *status {
	return fromPlugin(p.Plugin.Reserve(ctx, stateOf(s), pod, node))
}

// Unreserve calls the plugin.
func (p *ReservePoint) Unreserve(ctx context.Context, s cycleState, pod *corev1.Pod, node string) {
	p.Plugin.Unreserve(ctx, stateOf(s), pod, node)
}

// PermitPoint is the extension point Permit.
type PermitPoint struct {
	Host   *Host
	Plugin scheduler.PermitPlugin
}

// Permit calls the plugin.
func (p *PermitPoint) Permit(ctx context.Context, s cycleState, pod *corev1.Pod, node string) (*status, time.Duration) {
	result, timeout := p.Plugin.Permit(ctx, stateOf(s), pod, node)
	return fromPlugin(result), timeout
}

// PreBindPoint is the extension point PreBind.
type PreBindPoint struct {
	Host   *Host
	Plugin scheduler.PreBindPlugin
}

// PreBind calls the plugin.
func (p *PreBindPoint) PreBind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) *status {
	return fromPlugin(p.Plugin.PreBind(ctx, stateOf(s), pod, node))
}

// BindPoint is the extension point Bind.
type BindPoint struct {
	Host   *Host
	Plugin scheduler.BindPlugin
}

// Bind calls the plugin.
func (p *BindPoint) Bind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) *status {
	return fromPlugin(p.Plugin.Bind(ctx, stateOf(s), pod, node))
}

// PostBindPoint is the extension point PostBind.
type PostBindPoint struct {
	Host   *Host
	Plugin scheduler.PostBindPlugin
}

// PostBind calls the plugin.
func (p *PostBindPoint) PostBind(ctx context.Context, s cycleState, pod *corev1.Pod, node string) {
	p.Plugin.PostBind(ctx, stateOf(s), pod, node)
}
