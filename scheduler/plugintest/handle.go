package plugintest

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Handle is a scheduler.Handle. The zero value is ready to use: it has no nodes, and its API server
// is unreachable.
type Handle struct {
	// NodeList is the list of nodes that Nodes returns.
	NodeList []scheduler.NodeInfo
	// Config is the configuration of the API server. If it is nil, every request fails.
	Config *rest.Config
	// Registry is the registry of the metrics. If it is nil, Metrics creates one.
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

// SharedInformerFactory implements scheduler.Handle. The test starts it after New, as the scheduler does.
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
