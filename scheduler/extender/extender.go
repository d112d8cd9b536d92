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
	// Name is the name in messages and metrics; the default is the plugin's own name.
	Name string
	// Plugin is the plugin, created with the extender's Handle.
	Plugin scheduler.Plugin
	// Weight is the weight of its scores relative to other policies; the default is 1.
	Weight int64
}

// ReadyPolicy is implemented by a plugin that reads its own data, such as metrics: while Ready
// returns an error, /readyz reports it.
type ReadyPolicy interface {
	// Ready returns an error while the plugin lacks data that it needs. It does not block.
	Ready() error
}

// Binder binds pods that no policy binds.
type Binder interface {
	// Bind assigns the pod to the node. The pod has at least namespace, name and UID.
	Bind(ctx context.Context, pod *corev1.Pod, node string) error
}

// Default limits of a request.
const (
	// DefaultBodyTime is the time limit for receiving a request body. A body smaller than 32 MiB has
	// less time: 2 s and a second for each 4 MiB that have arrived.
	DefaultBodyTime = 10 * time.Second
	// DefaultCallTime is the time limit for the policies. The scheduler usually gives up earlier,
	// which also ends the request.
	DefaultCallTime = 30 * time.Second
)

// Options are an extender's options.
type Options struct {
	// Handle is the handle with which the policies were created. Start it after New, so that no
	// binding is missed.
	Handle *Handle
	// Policies are called in this order. At least one is required.
	Policies []Policy
	// Verbs are the requests that are served; the default is DefaultVerbs. VerbBind has to be named,
	// and requires a client certificate that the server has verified, also where the other verbs
	// require none.
	Verbs []string
	// Binder binds pods; by default a Binding is created in the API server.
	Binder Binder
	// NamesOnly refuses requests that contain whole nodes or pods to preempt, and bounds bodies
	// accordingly: for schedulers that set nodeCacheCapable.
	NamesOnly bool
	// MaxBody is the maximum body size in bytes. By default, it follows from the number of nodes in
	// the cache. Larger bodies are answered with status 413, as are bodies that name too many nodes.
	MaxBody int64
	// MaxMemory is the memory in bytes that all running requests may take, by an upper bound for the
	// memory that the extender allocates for each. Defaults to half the program's memory limit
	// (GOMEMLIMIT), 1 GiB without one. A request that does not get its memory within a second is
	// answered with status 503, which a scheduler handles like an extender that does not answer.
	MaxMemory int64
	// BodyTime and CallTime are time limits; the defaults apply if they are 0. A body that takes
	// longer is answered with status 408.
	BodyTime, CallTime time.Duration
}

// Extender serves policies to schedulers.
type Extender struct {
	name     string
	verbs    []string
	policies []*served
	cache    *Cache // nil without a cluster
	client   kubernetes.Interface
	binder   Binder
	registry *prometheus.Registry
	metrics  *metrics
	log      *zap.Logger
	reserved *reservations
	probes   *probes

	namesOnly          bool
	maxBody            int64
	waiting            *crowd // requests that wait for their client
	memory             *memory
	bodyTime, callTime time.Duration
}

// New returns an extender. Errors in Options implement Invalid.
func New(o Options) (*Extender, error) {
	if o.Handle == nil {
		return nil, &optionError{"no handle: create one with NewHandle, and the policies with it"}
	}
	if o.MaxBody < 0 || o.MaxMemory < 0 || o.BodyTime < 0 || o.CallTime < 0 {
		return nil, &optionError{"the limits of a request must be at least 0"}
	}
	if err := checkVerbs(o.Verbs); err != nil {
		return nil, err
	}
	policies, left, err := serveAll(o.Policies)
	if err != nil {
		return nil, err
	}
	h := o.Handle
	e := &Extender{
		name: h.component, verbs: o.Verbs, policies: policies, cache: h.cache, client: h.client, binder: o.Binder,
		registry: h.registry, log: h.log,
		reserved:  &reservations{pods: map[types.UID]bool{}},
		namesOnly: o.NamesOnly, maxBody: o.MaxBody, waiting: newCrowd(maxWaiting, maxWaitingPerAddress),
		bodyTime: orDefault(o.BodyTime, DefaultBodyTime), callTime: orDefault(o.CallTime, DefaultCallTime),
		memory: newMemory(o.MaxMemory),
	}
	e.probes = &probes{exists: e.inCache}
	if len(e.verbs) == 0 {
		e.verbs = DefaultVerbs()
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
		e.log.Info("serve a policy", zap.String("policy", p.name), zap.Int64("weight", p.weight),
			zap.Strings("points", p.points()))
		if points := left[p.name]; len(points) > 0 {
			e.log.Warn(
				"a policy has extension points that a scheduler does not call on extenders; compile it into the scheduler if "+
					"they matter",
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
