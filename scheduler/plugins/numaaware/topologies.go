package numaaware

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// nodeResourceTopologies are objects that agents such as node-feature-discovery write for their
// nodes.
func nodeResourceTopologies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}
}

// topologies maps the names of nodes to their topologies.
type topologies struct {
	changed func(node string)

	mu    sync.RWMutex
	nodes map[string]*topology
}

func newTopologies(changed func(node string)) *topologies {
	return &topologies{changed: changed, nodes: map[string]*topology{}}
}

// of returns the topology of a node, nil if it is not known.
func (s *topologies) of(node string) *topology {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[node]
}

// watch reads NodeResourceTopologies until ctx is done.
func (s *topologies) watch(ctx context.Context, h scheduler.Handle) error {
	return customresource.Watch(ctx, h, customresource.Options{
		Plugin: Name, Resource: nodeResourceTopologies(), Missing: "no node has a known topology", Set: s.set, Delete: s.remove,
	})
}

// set reads the topology of a node.
func (s *topologies) set(u *unstructured.Unstructured) error {
	t, err := parse(u.Object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.nodes[u.GetName()] = t
	s.mu.Unlock()
	s.changed(u.GetName())
	return nil
}

func (s *topologies) remove(_, node string) {
	s.mu.Lock()
	delete(s.nodes, node)
	s.mu.Unlock()
	s.changed(node)
}
