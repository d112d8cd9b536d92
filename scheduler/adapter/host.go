package adapter

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Host is the scheduler.Handle of one plugin, with the plugin's arguments.
type Host struct {
	// Arguments are the plugin's arguments in the scheduler configuration.
	Arguments scheduler.Arguments

	name   string // by which the plugin is registered
	handle handle
	plugin scheduler.Plugin
	skips  skips
	panics *prometheus.CounterVec
	log    scheduler.Logger // for calls without a context too

	normalizes bool      // the plugin is a ScoreNormalizer
	unbounded  sync.Once // logs the first score out of bounds
}

var _ scheduler.Handle = &Host{}

// ClientSet implements scheduler.Handle.
func (h *Host) ClientSet() kubernetes.Interface { return h.handle.ClientSet() }

// SharedInformerFactory implements scheduler.Handle.
func (h *Host) SharedInformerFactory() informers.SharedInformerFactory {
	return h.handle.SharedInformerFactory()
}

// EventRecorder implements scheduler.Handle.
func (h *Host) EventRecorder() events.EventRecorder { return h.handle.EventRecorder() }

// Logger implements scheduler.Handle.
func (h *Host) Logger(ctx context.Context) scheduler.Logger {
	return scheduler.NewLogger(ctx, logSink{})
}

// Metrics implements scheduler.Handle.
func (h *Host) Metrics() prometheus.Registerer { return registerer{} }

// IterateOverWaitingPods implements scheduler.Handle.
func (h *Host) IterateOverWaitingPods(visit func(scheduler.WaitingPod)) {
	h.handle.IterateOverWaitingPods(func(p waitingPod) { visit(portableWaitingPod{p, h}) })
}

// GetWaitingPod implements scheduler.Handle.
func (h *Host) GetWaitingPod(uid types.UID) scheduler.WaitingPod {
	if p := h.handle.GetWaitingPod(uid); p != nil {
		return portableWaitingPod{p, h}
	}
	return nil
}

// RejectWaitingPod implements scheduler.Handle.
func (h *Host) RejectWaitingPod(uid types.UID) { h.handle.RejectWaitingPod(uid) }

// Activate implements scheduler.Handle.
func (h *Host) Activate(ctx context.Context, pod *corev1.Pod) error {
	return scheduler.ActivateByUpdate(ctx, h.handle.ClientSet(), pod)
}

// registered returns the name by which a plugin is registered. A plugin knows itself by its own
// name.
func (h *Host) registered(plugin string) string {
	if plugin == h.plugin.Name() {
		return h.name
	}
	return plugin
}

type portableWaitingPod struct {
	pod  waitingPod
	host *Host
}

func (w portableWaitingPod) Pod() *corev1.Pod         { return w.pod.GetPod() }
func (w portableWaitingPod) PendingPlugins() []string { return w.pod.GetPendingPlugins() }
func (w portableWaitingPod) Allow(plugin string)      { w.pod.Allow(w.host.registered(plugin)) }
func (w portableWaitingPod) Reject(plugin, message string) {
	reject(w.pod, w.host.registered(plugin), message)
}

// registerer registers with the registry that the scheduler serves at /metrics. It uses
// RawMustRegister, which panics on an error, because every release has it.
type registerer struct{}

// Register registers c, or returns the registry's error.
func (registerer) Register(c prometheus.Collector) (err error) {
	defer func() {
		if r := recover(); r != nil {
			refused, ok := r.(error)
			if !ok {
				panic(r)
			}
			err = refused
		}
	}()
	legacyregistry.RawMustRegister(c)
	return nil
}

// MustRegister registers the collectors or panics.
func (registerer) MustRegister(collectors ...prometheus.Collector) {
	legacyregistry.RawMustRegister(collectors...)
}

// Unregister returns false: the scheduler's registry cannot unregister a collector.
func (registerer) Unregister(prometheus.Collector) bool { return false }
