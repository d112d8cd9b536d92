package plugintest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Logger implements scheduler.Handle.
func (h *Handle) Logger(ctx context.Context) scheduler.Logger {
	return scheduler.NewLogger(ctx, (*sink)(h))
}

// Lines returns the log lines.
func (h *Handle) Lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.lines...)
}

type sink Handle

func (s *sink) Enabled(_ context.Context, level int) bool { return level <= s.Level }

func (s *sink) Info(_ context.Context, _ int, message string, keysAndValues []interface{}) {
	s.write(message, keysAndValues)
}

func (s *sink) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	s.write(message, append([]interface{}{"err", err}, keysAndValues...))
}

func (s *sink) write(message string, keysAndValues []interface{}) {
	line := message
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		line += fmt.Sprintf(" %v=%v", keysAndValues[i], keysAndValues[i+1])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// EventRecorder implements scheduler.Handle.
func (h *Handle) EventRecorder() events.EventRecorder { return (*recorder)(h) }

// Events returns the recorded events, each as "type reason action: note".
func (h *Handle) Events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.events...)
}

// Activate implements scheduler.Handle.
func (h *Handle) Activate(_ context.Context, pod *corev1.Pod) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.activated = append(h.activated, pod.Namespace+"/"+pod.Name)
	return nil
}

// Activated returns the pods that were activated, each as namespace/name, in the order of the calls.
func (h *Handle) Activated() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.activated...)
}

type recorder Handle

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, action, note string, values ...interface{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s %s: %s", kind, reason, action, fmt.Sprintf(note, values...)))
}
