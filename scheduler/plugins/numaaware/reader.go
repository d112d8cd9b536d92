package numaaware

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// nodeResourceTopologies are the objects that agents on the nodes write, such as those of node-feature-discovery.
func nodeResourceTopologies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}
}

// reader has the topologies of the nodes by their names.
type reader struct {
	log     scheduler.Logger
	changed func(node string)

	mu     sync.RWMutex
	nodes  map[string]*topology
	status int // of the API server's last response; 0: none
	logged int // the status of the failure that was logged last
}

func newReader(log scheduler.Logger, changed func(node string)) *reader {
	return &reader{log: log, changed: changed, nodes: map[string]*topology{}}
}

// of returns the topology of a node, nil if it is not known.
func (r *reader) of(node string) *topology {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.nodes[node]
}

// watch reads NodeResourceTopologies until ctx is done. New does not wait for the informer, because the resource may never exist.
func (r *reader) watch(ctx context.Context, config *rest.Config) error {
	// In old releases the watch error handler gets an error without a status. The transport sees the status of every response.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next: next, answered: r.answered} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client for NodeResourceTopologies: %w", err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, nodeResourceTopologies(), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { r.failed(err) }); err != nil {
		return fmt.Errorf("watch NodeResourceTopologies: %w", err)
	}
	// The results differ between releases of client-go. They are not needed: the handler is never removed.
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ //nolint:errcheck
		AddFunc:    r.set,
		UpdateFunc: func(_, now interface{}) { r.set(now) },
		DeleteFunc: r.remove,
	})
	go informer.Run(ctx.Done())
	return nil
}

// set reads the topology of a node. One that cannot be read counts as deleted.
func (r *reader) set(changed interface{}) {
	u, ok := changed.(*unstructured.Unstructured)
	if !ok {
		return
	}
	t, err := parse(u.Object)
	if err != nil {
		r.log.Error(err, "NUMAAware ignores an object that it cannot read", "nodeResourceTopology", u.GetName())
	}
	r.put(u.GetName(), t)
}

// remove removes a topology that the informer reported as deleted.
func (r *reader) remove(deleted interface{}) {
	if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	if u, ok := deleted.(*unstructured.Unstructured); ok {
		r.put(u.GetName(), nil)
	}
}

func (r *reader) put(node string, t *topology) {
	r.mu.Lock()
	r.nodes[node] = t
	if t == nil {
		delete(r.nodes, node)
	}
	r.mu.Unlock()
	r.changed(node)
}

// observer calls answered with the status of each response, 0 if there is none.
type observer struct {
	next     http.RoundTripper
	answered func(status int)
}

// RoundTrip implements http.RoundTripper.
func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	o.answered(status)
	return response, err
}

// answered records the status of a response. After a success the next failure is logged again.
func (r *reader) answered(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	if status == http.StatusOK {
		r.logged = status
	}
}

// failed logs each kind of failure of a list or watch once. A closed watch and a missing resource are not failures.
func (r *reader) failed(err error) {
	r.mu.Lock()
	status := r.status
	news := r.logged != status
	r.logged = status
	r.mu.Unlock()
	switch {
	case !news || status == http.StatusGone:
	case status == http.StatusNotFound:
		r.log.Info(0, "NUMAAware finds no NodeResourceTopologies, because their CustomResourceDefinition is not installed")
	default:
		r.log.Error(err, "NUMAAware cannot read NodeResourceTopologies; the last ones are used")
	}
}
