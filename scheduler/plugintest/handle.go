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

// Handle is a scheduler.Handle. The zero value is usable: a scheduler without nodes that reaches
// no API server.
type Handle struct {
	// NodeList is what Nodes lists.
	NodeList []scheduler.NodeInfo
	// Config says where the API server is. nil is nowhere: every request fails.
	Config *rest.Config
	// Registry is where metrics are registered; nil makes one.
	Registry *prometheus.Registry
	// Waiting are the pods that Permit holds back.
	Waiting []*WaitingPod
	// Level is the level that is logged, as with the scheduler's flag --v.
	Level int

	mu      sync.Mutex
	lines   []string
	events  []string
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
}

var _ scheduler.Handle = &Handle{}

// nowhere is an address that no name server knows.
const nowhere = "http://apiserver.invalid"

// KubeConfig implements scheduler.Handle.
func (h *Handle) KubeConfig() (*rest.Config, error) {
	if h.Config == nil {
		return &rest.Config{Host: nowhere}, nil
	}
	return rest.CopyConfig(h.Config), nil
}

// ClientSet implements scheduler.Handle. It panics if Config is not one.
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
	return nil, fmt.Errorf("there is no node %q", name)
}
