package extender

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Policy is a portable plugin that the extender serves.
type Policy struct {
	// Name is what messages and metrics call it; empty is the plugin's own name.
	Name string
	// Plugin is the plugin, made with the extender's Handle.
	Plugin scheduler.Plugin
	// Weight is what its scores count beside those of other policies; 0 is 1.
	Weight int64
}

// ReadyPolicy is for a plugin that reads data of its own, such as metrics: as long as Ready returns an error, /readyz says so.
type ReadyPolicy interface {
	// Ready returns nil when the plugin has what it needs. It does not wait.
	Ready() error
}

// Binder binds pods that no policy with Bind took.
type Binder interface {
	// Bind assigns the pod to the node. The pod has at least namespace, name and UID.
	Bind(ctx context.Context, pod *corev1.Pod, node string) error
}

// Bounds of what a request may cost, unless Options say otherwise.
const (
	// DefaultMaxBody is room for 5,000 whole nodes of 25 kB each.
	DefaultMaxBody = 128 << 20
	// DefaultBodyTime is how long the body of a request may take to arrive.
	DefaultBodyTime = 10 * time.Second
	// DefaultCallTime is how long a request may take altogether. The scheduler gives up earlier, and its giving up ends the request.
	DefaultCallTime = 30 * time.Second
)

// Options say what an extender serves.
type Options struct {
	// Handle is what the policies were made with.
	Handle *Handle
	// Policies are asked in this order. There must be one.
	Policies []Policy
	// Binder binds pods; nil posts a Binding to the API server.
	Binder Binder
	// MaxBody is the largest body that is read, in bytes; 0 is DefaultMaxBody. Larger ones are answered with status 413.
	MaxBody int64
	// BodyTime and CallTime are bounds in time; 0 are the defaults. A body that takes longer is answered with status 408.
	BodyTime, CallTime time.Duration
}
