package plugintest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// IterateOverWaitingPods implements scheduler.Handle.
func (h *Handle) IterateOverWaitingPods(visit func(scheduler.WaitingPod)) {
	for _, w := range h.Waiting {
		visit(w)
	}
}

// GetWaitingPod implements scheduler.Handle.
func (h *Handle) GetWaitingPod(uid types.UID) scheduler.WaitingPod {
	for _, w := range h.Waiting {
		if w.Waiting.UID == uid {
			return w
		}
	}
	return nil
}

// RejectWaitingPod implements scheduler.Handle.
func (h *Handle) RejectWaitingPod(uid types.UID) {
	if w := h.GetWaitingPod(uid); w != nil {
		w.Reject("", "removed")
	}
}

// WaitingPod is a scheduler.WaitingPod that records Allow and Reject.
type WaitingPod struct {
	// Waiting is the pod, Plugins are the plugins that have not allowed it.
	Waiting *corev1.Pod
	Plugins []string
	// Rejected is the message of Reject.
	Rejected string
}

var _ scheduler.WaitingPod = &WaitingPod{}

// Pod implements scheduler.WaitingPod.
func (w *WaitingPod) Pod() *corev1.Pod { return w.Waiting }

// PendingPlugins implements scheduler.WaitingPod.
func (w *WaitingPod) PendingPlugins() []string { return w.Plugins }

// Allow implements scheduler.WaitingPod.
func (w *WaitingPod) Allow(plugin string) {
	var left []string
	for _, p := range w.Plugins {
		if p != plugin {
			left = append(left, p)
		}
	}
	w.Plugins = left
}

// Reject implements scheduler.WaitingPod.
func (w *WaitingPod) Reject(_, message string) { w.Rejected = message }
