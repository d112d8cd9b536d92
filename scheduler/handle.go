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

// Handle is what the scheduler offers to a plugin. New gets it, and the plugin keeps it.
type Handle interface {
	// ClientSet returns the scheduler's own client.
	ClientSet() kubernetes.Interface
	// SharedInformerFactory returns the scheduler's informers. An informer that New asks for is
	// started and filled before the first pod is scheduled; one that is asked for later is not started.
	SharedInformerFactory() informers.SharedInformerFactory
	// KubeConfig returns a configuration for further clients, such as a dynamic one. It is a copy.
	// From 1.22 on it is the scheduler's own; before, one that uses the connection of ClientSet.
	KubeConfig() (*rest.Config, error)
	// EventRecorder records events in the name of the scheduler.
	EventRecorder() events.EventRecorder
	// Nodes returns the nodes of the current scheduling cycle.
	Nodes() NodeLister
	// Logger returns the scheduler's log. With the context of the call, a line says which pod it
	// is about, on releases that log so.
	Logger(ctx context.Context) Logger
	// Metrics registers with the scheduler's own /metrics. New runs once per profile: if
	// Register returns a prometheus.AlreadyRegisteredError, use its ExistingCollector. Nothing can be
	// unregistered.
	Metrics() prometheus.Registerer
	// IterateOverWaitingPods calls visit for each pod that Permit holds back.
	IterateOverWaitingPods(visit func(WaitingPod))
	// GetWaitingPod returns a pod that Permit holds back, nil if it does not.
	GetWaitingPod(uid types.UID) WaitingPod
	// RejectWaitingPod rejects a pod that Permit holds back.
	RejectWaitingPod(uid types.UID)
}

// WaitingPod is a pod that Permit holds back.
type WaitingPod interface {
	// Pod returns the pod.
	Pod() *corev1.Pod
	// PendingPlugins returns the names of the plugins that have not let it go.
	PendingPlugins() []string
	// Allow lets it go as far as the named plugin is concerned.
	Allow(plugin string)
	// Reject makes it unschedulable.
	Reject(plugin, message string)
}

// Logger is the scheduler's log, bound to a context. It is a small value: it allocates nothing
// until it writes. Before composing values for a line on the path of every node, ask Enabled.
type Logger struct {
	ctx  context.Context
	sink LogSink
}

// LogSink is where a Logger writes; the adapters and plugintest have one each.
type LogSink interface {
	Enabled(ctx context.Context, level int) bool
	Info(ctx context.Context, level int, message string, keysAndValues []interface{})
	Error(ctx context.Context, err error, message string, keysAndValues []interface{})
}

// NewLogger returns a Logger that writes to sink.
func NewLogger(ctx context.Context, sink LogSink) Logger {
	return Logger{ctx: ctx, sink: sink}
}

// Enabled tells whether lines of this level are written. Levels are those of the scheduler's
// flag --v: 2 is for what happens seldom, 5 for the reasons of a decision, 10 for each node.
func (l Logger) Enabled(level int) bool {
	return l.sink != nil && l.sink.Enabled(l.ctx, level)
}

// Info writes a line with a message and pairs of key and value.
func (l Logger) Info(level int, message string, keysAndValues ...interface{}) {
	if l.Enabled(level) {
		l.sink.Info(l.ctx, level, message, keysAndValues)
	}
}

// Error writes a line about something that a person should look at. err may be nil.
func (l Logger) Error(err error, message string, keysAndValues ...interface{}) {
	if l.sink != nil {
		l.sink.Error(l.ctx, err, message, keysAndValues)
	}
}
