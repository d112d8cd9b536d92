package scheduler

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// Handle gives a plugin access to the scheduler. It is passed to New, and the plugin may keep it.
type Handle interface {
	// ClientSet returns the scheduler's client.
	ClientSet() kubernetes.Interface
	// SharedInformerFactory returns the scheduler's informers. Informers that New requests are started
	// and synced before the first pod is scheduled; informers that are requested later are not
	// started.
	SharedInformerFactory() informers.SharedInformerFactory
	// KubeConfig returns a configuration for other clients, such as a dynamic client. It is a copy of
	// the scheduler's configuration; before 1.22 it uses ClientSet's connection.
	KubeConfig() (*rest.Config, error)
	// EventRecorder records events in the scheduler's name.
	EventRecorder() events.EventRecorder
	// Nodes returns the nodes of the current scheduling cycle.
	Nodes() NodeLister
	// Logger returns the scheduler's logger. ctx is the call's context: the log lines in some releases
	// name its pod.
	Logger(ctx context.Context) Logger
	// Metrics registers metrics that the scheduler serves at /metrics. New runs once per profile: if
	// Register returns a prometheus.AlreadyRegisteredError, use its ExistingCollector. Collectors
	// cannot be unregistered.
	Metrics() prometheus.Registerer
	// IterateOverWaitingPods calls visit for each pod that waits for Permit.
	IterateOverWaitingPods(visit func(WaitingPod))
	// GetWaitingPod returns a pod that waits for Permit, or nil if it does not wait.
	GetWaitingPod(uid types.UID) WaitingPod
	// RejectWaitingPod rejects a pod that waits for Permit.
	RejectWaitingPod(uid types.UID)
	// Activate makes the scheduler retry a pod that it could not schedule, when the pod's backoff is
	// over. Without it the pod waits for the next event in the cluster, or up to five minutes. It is
	// for a plugin whose decisions depend on something that the scheduler does not watch. Each call is
	// a request to the API server (see ActivateByUpdate): call it for pods that the plugin rejected,
	// and only when the decision may change. A plugin that is an EventsPlugin must register
	// ActionUpdate of EventPod, or 1.32 and later ignore the call.
	Activate(ctx context.Context, pod *corev1.Pod) error
}

// WaitingPod is a pod that waits for Permit.
type WaitingPod interface {
	// Pod returns the pod.
	Pod() *corev1.Pod
	// PendingPlugins returns the names of the plugins that have not allowed the pod.
	PendingPlugins() []string
	// Allow allows the pod on behalf of the named plugin.
	Allow(plugin string)
	// Reject rejects the pod as unschedulable.
	Reject(plugin, message string)
}

// Logger writes to the scheduler's log with a call's context. It does not allocate until it writes.
// In Filter and Score, check Enabled before you compute values for a line.
type Logger struct {
	ctx  context.Context
	sink LogSink
}

// LogSink is a Logger's destination. The adapter and plugintest implement it.
type LogSink interface {
	Enabled(ctx context.Context, level int) bool
	Info(ctx context.Context, level int, message string, keysAndValues []interface{})
	Error(ctx context.Context, err error, message string, keysAndValues []interface{})
}

// NewLogger returns a Logger that writes to sink.
func NewLogger(ctx context.Context, sink LogSink) Logger {
	return Logger{ctx: ctx, sink: sink}
}

// Enabled reports whether lines at this level are written. Levels are those of the scheduler's flag
// --v: use 2 for rare events, 5 for the reasons behind a decision, 10 for each node.
func (l Logger) Enabled(level int) bool {
	return l.sink != nil && l.sink.Enabled(l.ctx, level)
}

// Info writes a line with a message and key-value pairs.
func (l Logger) Info(level int, message string, keysAndValues ...interface{}) {
	if l.Enabled(level) {
		l.sink.Info(l.ctx, level, message, keysAndValues)
	}
}

// Error writes a line about an error that needs attention. err may be nil.
func (l Logger) Error(err error, message string, keysAndValues ...interface{}) {
	if l.sink != nil {
		l.sink.Error(l.ctx, err, message, keysAndValues)
	}
}
