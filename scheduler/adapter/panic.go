package adapter

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// newPanics registers the counter of panics, which all plugins share.
func newPanics(r prometheus.Registerer) (*prometheus.CounterVec, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_plugin_")
	panics := all.Counter("panics_total", "Panics of portable plugins, by plugin and extension point.", "plugin",
		"extension_point")
	return panics, all.Err()
}

// recoverFrom recovers from a plugin panic, so that the call's pod gets an error and the scheduler
// continues. Each method that calls the plugin defers it. result is the status that the method
// returns, nil if it returns none.
func (h *Host) recoverFrom(point string, pod *corev1.Pod, result **status) {
	caught := recover()
	if caught == nil {
		return
	}
	err := fmt.Errorf("plugin %s panicked at %s: %v%s", h.name, point, caught, panicPlace())
	h.panics.WithLabelValues(h.name, point).Inc()
	h.log.Error(err, "A plugin panicked", "pod", nameOf(pod), "stack", string(debug.Stack()))
	if result != nil {
		*result = asStatus(err)
	}
}

// panicPlace returns the line that panicked, as in " (plugin.go:54)". It is called by a deferred
// function, and empty if the line is not known.
func panicPlace() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	panics := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panics = true
		case panics && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf(" (%s:%d)", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// nameOf returns a pod's namespace and name. The pod is nil for a group of pods in the queue.
func nameOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}
