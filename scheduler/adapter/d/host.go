//go:build pmksched

package d

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/adapter/host"
)

// Host is the scheduler as one plugin sees it: its scheduler.Handle and its arguments.
type Host struct {
	// Arguments are what the configuration says about the plugin.
	Arguments scheduler.Arguments

	handle framework.Handle
	plugin scheduler.Plugin
}

var _ scheduler.Handle = &Host{}

// ClientSet implements scheduler.Handle.
func (h *Host) ClientSet() kubernetes.Interface { return h.handle.ClientSet() }

// SharedInformerFactory implements scheduler.Handle.
func (h *Host) SharedInformerFactory() informers.SharedInformerFactory {
	return h.handle.SharedInformerFactory()
}

// KubeConfig implements scheduler.Handle.
func (h *Host) KubeConfig() (*rest.Config, error) {
	config := h.handle.KubeConfig()
	if config == nil {
		return nil, errors.New("the scheduler has no kubeconfig to give")
	}
	return rest.CopyConfig(config), nil
}

// EventRecorder implements scheduler.Handle.
func (h *Host) EventRecorder() events.EventRecorder { return h.handle.EventRecorder() }

// Logger implements scheduler.Handle.
func (h *Host) Logger(ctx context.Context) scheduler.Logger {
	return scheduler.NewLogger(ctx, host.Log{})
}

// Metrics implements scheduler.Handle.
func (h *Host) Metrics() prometheus.Registerer { return host.Metrics{} }

// IterateOverWaitingPods implements scheduler.Handle.
func (h *Host) IterateOverWaitingPods(visit func(scheduler.WaitingPod)) {
	h.handle.IterateOverWaitingPods(func(p framework.WaitingPod) { visit(waitingPod{p}) })
}

// GetWaitingPod implements scheduler.Handle.
func (h *Host) GetWaitingPod(uid types.UID) scheduler.WaitingPod {
	if p := h.handle.GetWaitingPod(uid); p != nil {
		return waitingPod{p}
	}
	return nil
}

// RejectWaitingPod implements scheduler.Handle.
func (h *Host) RejectWaitingPod(uid types.UID) { h.handle.RejectWaitingPod(uid) }

type waitingPod struct{ pod framework.WaitingPod }

func (w waitingPod) Pod() *corev1.Pod              { return w.pod.GetPod() }
func (w waitingPod) PendingPlugins() []string      { return w.pod.GetPendingPlugins() }
func (w waitingPod) Allow(plugin string)           { w.pod.Allow(plugin) }
func (w waitingPod) Reject(plugin, message string) { w.pod.Reject(plugin, message) }
