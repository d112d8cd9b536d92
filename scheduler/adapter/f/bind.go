package f

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// ReservePoint is the extension point Reserve.
type ReservePoint struct {
	Host   *Host
	Plugin scheduler.ReservePlugin
}

var _ fwk.ReservePlugin = &struct {
	Base
	ReservePoint
}{}

// Reserve calls the plugin.
func (p *ReservePoint) Reserve(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return fromPlugin(p.Plugin.Reserve(ctx, stateOf(s), pod, node))
}

// Unreserve calls the plugin.
func (p *ReservePoint) Unreserve(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) {
	p.Plugin.Unreserve(ctx, stateOf(s), pod, node)
}

// PermitPoint is the extension point Permit.
type PermitPoint struct {
	Host   *Host
	Plugin scheduler.PermitPlugin
}

var _ fwk.PermitPlugin = &struct {
	Base
	PermitPoint
}{}

// Permit calls the plugin.
func (p *PermitPoint) Permit(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	status, wait := p.Plugin.Permit(ctx, stateOf(s), pod, node)
	return fromPlugin(status), wait
}

// PreBindPoint is the extension point PreBind.
type PreBindPoint struct {
	Host   *Host
	Plugin scheduler.PreBindPlugin
}

var _ fwk.PreBindPlugin = &struct {
	Base
	PreBindPoint
}{}

// PreBind calls the plugin.
func (p *PreBindPoint) PreBind(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return fromPlugin(p.Plugin.PreBind(ctx, stateOf(s), pod, node))
}

// BindPoint is the extension point Bind.
type BindPoint struct {
	Host   *Host
	Plugin scheduler.BindPlugin
}

var _ fwk.BindPlugin = &struct {
	Base
	BindPoint
}{}

// Bind calls the plugin.
func (p *BindPoint) Bind(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return fromPlugin(p.Plugin.Bind(ctx, stateOf(s), pod, node))
}

// PostBindPoint is the extension point PostBind.
type PostBindPoint struct {
	Host   *Host
	Plugin scheduler.PostBindPlugin
}

var _ fwk.PostBindPlugin = &struct {
	Base
	PostBindPoint
}{}

// PostBind calls the plugin.
func (p *PostBindPoint) PostBind(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, node string) {
	p.Plugin.PostBind(ctx, stateOf(s), pod, node)
}
