package extender

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// HandleOptions are a Handle's options.
type HandleOptions struct {
	// Config is the client configuration for the API server. If it is nil, the extender runs
	// without a cluster.
	Config *rest.Config
	// Component is the name in events and in requests to the API server; the default is
	// "pmk-extender".
	Component string
	// Log is the logger of the policies and the extender. If it is nil, log lines are discarded.
	// Verbosity is the log level of policies, like a scheduler's flag --v.
	Log       *zap.Logger
	Verbosity int
	// Registry holds the metrics of /metrics; the default is a new one.
	Registry *prometheus.Registry
}

// Handle is the scheduler.Handle for policies: it offers the same as the scheduler's handle.
// Without a cluster ClientSet and SharedInformerFactory return nil, and KubeConfig an error.
type Handle struct {
	component string
	config    *rest.Config
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	cache     *Cache
	events    events.EventBroadcaster
	recorder  events.EventRecorder
	log       *zap.Logger
	sink      *sink
	registry  *prometheus.Registry
}

var _ scheduler.Handle = &Handle{}

const (
	defaultComponent = "pmk-extender"
	// Each binding is a request, and a scheduler binds hundreds of pods per second.
	clientQPS = 1000
)

// NewHandle returns a handle. It does not connect before Start.
func NewHandle(o HandleOptions) (*Handle, error) {
	h := &Handle{component: o.Component, log: o.Log, registry: o.Registry, recorder: silent{}}
	if h.component == "" {
		h.component = defaultComponent
	}
	if h.log == nil {
		h.log = zap.NewNop()
	}
	if h.registry == nil {
		h.registry = prometheus.NewRegistry()
	}
	h.sink = &sink{log: h.log.Sugar(), verbosity: o.Verbosity}
	if o.Config == nil {
		return h, nil
	}
	h.config = rest.CopyConfig(o.Config)
	rest.AddUserAgent(h.config, h.component)
	if h.config.QPS == 0 && h.config.RateLimiter == nil {
		h.config.QPS, h.config.Burst = clientQPS, clientQPS
	}
	var err error
	if h.client, err = kubernetes.NewForConfig(compactly(h.config)); err != nil {
		return nil, fmt.Errorf("make a client of the API server %s: %w", h.config.Host, err)
	}
	h.factory = informers.NewSharedInformerFactoryWithOptions(h.client, 0, informers.WithTransform(newCompactor().compact))
	if h.cache, err = newCache(h.factory, h.log, h.registry); err != nil {
		return nil, err
	}
	h.events = events.NewBroadcaster(&events.EventSinkImpl{Interface: h.client.EventsV1()})
	h.recorder = h.events.NewRecorder(scheme.Scheme, h.component)
	return h, nil
}

// compactly returns a client configuration for Kubernetes' own types with protobuf, whose watches
// cost a fraction of JSON watches. KubeConfig's result does not change, since other types have no
// protobuf encoding.
func compactly(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	if c.ContentType == "" && c.AcceptContentTypes == "" {
		c.ContentType = runtime.ContentTypeProtobuf
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return c
}

// Start starts the informers of the cache and the informers that policies requested in their New,
// until ctx is done. It does not wait for them: /readyz reports when they are filled.
func (h *Handle) Start(ctx context.Context) error {
	if h.client == nil {
		return nil
	}
	h.cache.live(ctx)
	h.factory.StartWithContext(ctx)
	if err := h.events.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start recording events: %w", err)
	}
	context.AfterFunc(ctx, func() {
		h.events.Shutdown()
		h.factory.Shutdown()
	})
	return nil
}

// Cache returns the nodes and pods of the cluster, nil without a cluster.
func (h *Handle) Cache() *Cache { return h.cache }

// ClientSet implements scheduler.Handle.
func (h *Handle) ClientSet() kubernetes.Interface { return h.client }

// SharedInformerFactory implements scheduler.Handle. It has only pods that have not finished.
// Objects lack fields that no policy reads: managed fields, and of pods commands, environment
// variables, probes and container states.
func (h *Handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }

var errNoCluster = errors.New("the extender runs without a cluster (its kubeconfig is empty)")

// KubeConfig implements scheduler.Handle.
func (h *Handle) KubeConfig() (*rest.Config, error) {
	if h.config == nil {
		return nil, errNoCluster
	}
	return rest.CopyConfig(h.config), nil
}

// EventRecorder implements scheduler.Handle. Without a cluster it records nothing.
func (h *Handle) EventRecorder() events.EventRecorder { return h.recorder }

// Nodes implements scheduler.Handle. It lists the cache's nodes, or no nodes without a cluster.
func (h *Handle) Nodes() scheduler.NodeLister {
	if h.cache == nil {
		return noNodes{}
	}
	return h.cache
}

// Logger implements scheduler.Handle.
func (h *Handle) Logger(ctx context.Context) scheduler.Logger {
	return scheduler.NewLogger(ctx, h.sink)
}

// Metrics implements scheduler.Handle.
func (h *Handle) Metrics() prometheus.Registerer { return h.registry }

// IterateOverWaitingPods implements scheduler.Handle: only the scheduler calls Permit, so no pod
// waits here.
func (h *Handle) IterateOverWaitingPods(func(scheduler.WaitingPod)) {}

// GetWaitingPod implements scheduler.Handle.
func (h *Handle) GetWaitingPod(types.UID) scheduler.WaitingPod { return nil }

// RejectWaitingPod implements scheduler.Handle.
func (h *Handle) RejectWaitingPod(types.UID) {}

// Activate implements scheduler.Handle. Without a cluster it fails. A pod that is not pending
// according to the informer is left alone: its name and UID may come from a request of a client
// without rights.
func (h *Handle) Activate(ctx context.Context, pod *corev1.Pod) error {
	if h.client == nil {
		return fmt.Errorf("activate pod %s/%s: %w", pod.Namespace, pod.Name, errNoCluster)
	}
	pending := scheduler.PendingPod(h, pod.Namespace, pod.Name, pod.UID)
	if pending == nil {
		return nil
	}
	return scheduler.ActivateByUpdate(ctx, h.client, pending)
}

type silent struct{}

// Eventf implements events.EventRecorder.
func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...interface{}) {}

// noNodes is the NodeLister without a cluster.
type noNodes struct{}

// List implements scheduler.NodeLister.
func (noNodes) List() ([]scheduler.NodeInfo, error) { return nil, nil }

// Get implements scheduler.NodeLister.
func (noNodes) Get(name string) (scheduler.NodeInfo, error) {
	return nil, fmt.Errorf("find node %s: %w", name, errNoCluster)
}

type sink struct {
	log       *zap.SugaredLogger
	verbosity int
}

// Enabled implements scheduler.LogSink.
func (s *sink) Enabled(_ context.Context, level int) bool { return level <= s.verbosity }

// Info implements scheduler.LogSink.
func (s *sink) Info(_ context.Context, _ int, message string, keysAndValues []interface{}) {
	s.log.Infow(message, keysAndValues...)
}

// Error implements scheduler.LogSink.
func (s *sink) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	s.log.Errorw(message, append([]interface{}{zap.Error(err)}, keysAndValues...)...)
}
