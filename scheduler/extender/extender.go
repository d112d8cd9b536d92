package extender

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/prometheus/client_golang/prometheus"

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
	// DefaultCallTime is how long the policies may take. The scheduler gives up earlier, and its giving up ends the request.
	DefaultCallTime = 30 * time.Second
)

// Options say what an extender serves.
type Options struct {
	// Handle is what the policies were made with. It is started after New, so that no binding is missed.
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

// Extender serves policies to schedulers.
type Extender struct {
	name     string
	policies []*served
	cache    *Cache // nil without a cluster
	client   kubernetes.Interface
	binder   Binder
	registry *prometheus.Registry
	metrics  *metrics
	log      *zap.Logger
	reserved *reservations

	maxBody            int64
	bodyTime, callTime time.Duration
}

// New makes an extender. An error in Options says Invalid.
func New(o Options) (*Extender, error) {
	if o.Handle == nil {
		return nil, &optionError{"there is no handle: make one with NewHandle, and the policies with it"}
	}
	if o.MaxBody < 0 || o.BodyTime < 0 || o.CallTime < 0 {
		return nil, &optionError{"the bounds of a request are below 0"}
	}
	policies, left, err := serveAll(o.Policies)
	if err != nil {
		return nil, err
	}
	h := o.Handle
	e := &Extender{
		name: h.component, policies: policies, cache: h.cache, client: h.client, binder: o.Binder, registry: h.registry, log: h.log,
		reserved: &reservations{pods: map[types.UID]bool{}},
		maxBody:  orDefault(o.MaxBody, DefaultMaxBody), bodyTime: orDefault(o.BodyTime, DefaultBodyTime), callTime: orDefault(o.CallTime, DefaultCallTime),
	}
	if e.binder == nil && h.client != nil {
		e.binder = plainBinder{h.client}
	}
	if e.metrics, err = newMetrics(h.registry); err != nil {
		return nil, err
	}
	if err := registerReady(h.registry, policies); err != nil {
		return nil, err
	}
	for _, p := range policies {
		e.log.Info("serve a policy", zap.String("policy", p.name), zap.Int64("weight", p.weight), zap.Strings("points", p.points()))
		if points := left[p.name]; len(points) > 0 {
			e.log.Warn("a policy has extension points that no extender is asked at; compile it into the scheduler if they matter",
				zap.String("policy", p.name), zap.String("points", strings.Join(points, ", ")))
		}
	}
	if e.cache != nil {
		e.cache.onBound(e.noteBound)
	}
	return e, nil
}

func orDefault[T int64 | time.Duration](given, otherwise T) T {
	if given == 0 {
		return otherwise
	}
	return given
}
