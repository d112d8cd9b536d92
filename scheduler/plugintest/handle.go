package plugintest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Handle is a scheduler.Handle. The zero value is ready to use: it has no nodes, and its API server
// is unreachable.
type Handle struct {
	// NodeList is the list of nodes that Nodes returns.
	NodeList []scheduler.NodeInfo
	// Config is the API server's configuration. If it is nil, every request fails.
	Config *rest.Config
	// Registry is the metrics' registry. If it is nil, Metrics creates one.
	Registry *prometheus.Registry
	// Waiting are the pods that wait for Permit.
	Waiting []*WaitingPod
	// Level is the log level, as in the scheduler's flag --v.
	Level int

	mu        sync.Mutex
	lines     []string
	events    []string
	activated []string
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
}

var _ scheduler.Handle = &Handle{}

// unreachable is a host name that does not resolve (RFC 6761).
const unreachable = "http://apiserver.invalid"

// KubeConfig implements scheduler.Handle.
func (h *Handle) KubeConfig() (*rest.Config, error) {
	if h.Config == nil {
		return &rest.Config{Host: unreachable}, nil
	}
	return rest.CopyConfig(h.Config), nil
}

// ClientSet implements scheduler.Handle. It panics if Config is invalid.
func (h *Handle) ClientSet() kubernetes.Interface {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client == nil {
		config, _ := h.KubeConfig()
		h.client = kubernetes.NewForConfigOrDie(config)
	}
	return h.client
}

// SharedInformerFactory implements scheduler.Handle. The test starts it after New, as the scheduler
// does.
func (h *Handle) SharedInformerFactory() informers.SharedInformerFactory {
	client := h.ClientSet()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.factory == nil {
		h.factory = informers.NewSharedInformerFactory(client, 0)
	}
	return h.factory
}

// Metrics implements scheduler.Handle.
func (h *Handle) Metrics() prometheus.Registerer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Registry == nil {
		h.Registry = prometheus.NewRegistry()
	}
	return h.Registry
}

// Nodes implements scheduler.Handle.
func (h *Handle) Nodes() scheduler.NodeLister { return nodes(h.NodeList) }

type nodes []scheduler.NodeInfo

func (n nodes) List() ([]scheduler.NodeInfo, error) { return n, nil }

func (n nodes) Get(name string) (scheduler.NodeInfo, error) {
	for _, node := range n {
		if node.Node().Name == name {
			return node, nil
		}
	}
	return nil, fmt.Errorf("node %q not found", name)
}

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

// Activated returns the pods that were activated, each as namespace/name, in the order of the
// calls.
func (h *Handle) Activated() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.activated...)
}

// AwaitActivated waits until exactly these pods were activated, in this order: a plugin retries
// pods in the background. After a minute it fails the test.
func (h *Handle) AwaitActivated(t testing.TB, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !reflect.DeepEqual(want, h.Activated()); {
		if time.Now().After(deadline) {
			t.Fatalf("activated %q, want %q", h.Activated(), want)
		}
		time.Sleep(time.Millisecond)
	}
}

type recorder Handle

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, action, note string, values ...interface{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s %s: %s", kind, reason, action, fmt.Sprintf(note, values...)))
}
