package extender

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Cache holds the cluster's nodes with their pods and the sum of the pod requests, by name. It is
// updated with every event, so a request costs one lookup per node. The scheduler counts a pod as
// soon as it has chosen a node; the cache does so when it sees the binding.
type Cache struct {
	synced  []cache.InformerSynced
	pods    corelisters.PodLister
	metrics *cacheMetrics
	log     *zap.Logger

	mu    sync.RWMutex
	nodes map[string]*node // one without an object has pods and is not known yet
	// on is the node on which each pod counts, so that each pod counts once, regardless of the event
	// order.
	on    map[types.UID]string
	bound []func(ctx context.Context, pod *corev1.Pod, node string)
	// life is the cache's context, from start on.
	life context.Context
}

var _ scheduler.NodeLister = &Cache{}

// newCache returns a cache that fills when the factory is started.
func newCache(factory informers.SharedInformerFactory, log *zap.Logger, registry *prometheus.Registry) (*Cache, error) {
	c := &Cache{log: log, nodes: map[string]*node{}, on: map[types.UID]string{}}
	var err error
	if c.metrics, err = newCacheMetrics(registry, c); err != nil {
		return nil, err
	}
	nodes := factory.Core().V1().Nodes().Informer()
	pods := factory.InformerFor(&corev1.Pod{}, livePods)
	c.pods = corelisters.NewPodLister(pods.GetIndexer())
	for _, watched := range []struct {
		kind     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"nodes", nodes, cache.ResourceEventHandlerFuncs{
			AddFunc: c.setNode, UpdateFunc: func(_, now interface{}) { c.setNode(now) }, DeleteFunc: c.removeNode,
		}},
		{"pods", pods, cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: c.setPod, UpdateFunc: c.updatePod, DeleteFunc: c.removePod,
		}},
	} {
		kind := watched.kind
		err := watched.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			c.metrics.failures.WithLabelValues(kind).Inc()
			cache.DefaultWatchErrorHandler(ctx, r, err)
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
		registration, err := watched.informer.AddEventHandler(watched.handler)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// livePods returns an informer for the pods that have not finished, which use resources of nodes.
func livePods(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	var live internalinterfaces.TweakListOptionsFunc = func(o *metav1.ListOptions) {
		o.FieldSelector = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
	}
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, live)
}

// Synced reports whether the cache has all nodes and pods that existed at the start.
func (c *Cache) Synced() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// List implements scheduler.NodeLister.
func (c *Cache) List() ([]scheduler.NodeInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]scheduler.NodeInfo, 0, len(c.nodes))
	for _, n := range c.nodes {
		if n.object != nil {
			all = append(all, n)
		}
	}
	return all, nil
}

// Get implements scheduler.NodeLister.
func (c *Cache) Get(name string) (scheduler.NodeInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if n := c.nodes[name]; n != nil && n.object != nil {
		return n, nil
	}
	return nil, fmt.Errorf("find node %s: the extender's cache does not know it", name)
}

// visit calls found for each known name, for all names at the same moment.
func (c *Cache) visit(names []string, found func(i int, n *node)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, name := range names {
		if n := c.nodes[name]; n != nil {
			found(i, n)
		}
	}
}

// Counts returns the numbers of nodes and pods.
func (c *Cache) Counts() (nodes, pods int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, n := range c.nodes {
		if n.object != nil {
			nodes++
		}
	}
	return nodes, len(c.on)
}

// size returns the number of nodes, those included that are known by their pods only.
func (c *Cache) size() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.nodes)
}

// onBound registers callback, which is called for every pod that is bound to a node from now on.
func (c *Cache) onBound(callback func(ctx context.Context, pod *corev1.Pod, node string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bound = append(c.bound, callback)
}

// live sets the cache's lifetime. It is called before the informers start.
func (c *Cache) live(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life = ctx
}

func (c *Cache) setNode(now interface{}) {
	object, ok := now.(*corev1.Node)
	if !ok {
		return
	}
	c.metrics.changed("nodes")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[object.Name] = c.entry(object.Name).describedBy(object)
}

func (c *Cache) removeNode(last interface{}) {
	object, ok := scheduler.LastState(last).(*corev1.Node)
	if !ok {
		return
	}
	c.metrics.changed("nodes")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(object.Name, c.entry(object.Name).describedBy(nil))
}

// setPod adds or updates a pod. A pod that existed at the start counts, but onBound is not
// called for it: its load is already measured.
func (c *Cache) setPod(now interface{}, atStart bool) {
	pod, ok := now.(*corev1.Pod)
	if !ok {
		return
	}
	c.metrics.changed("pods")
	name := pod.Spec.NodeName
	c.mu.Lock()
	before, counted := c.on[pod.UID]
	if counted {
		c.forget(pod.UID, before)
	}
	if name != "" && !scheduler.PodFinished(pod) {
		c.on[pod.UID] = name
		c.nodes[name] = c.entry(name).with(pod)
	}
	callbacks, life := c.bound, c.life
	c.mu.Unlock()
	if name == "" || counted || atStart {
		return
	}
	for _, callback := range callbacks {
		callback(life, pod, name)
	}
}

// updatePod handles a changed pod. After a gap in the watch, a pod that was deleted and created
// again under the same name arrives as a change of the old one; only the UID differs, as in
// kube-scheduler (pkg/scheduler/eventhandlers.go, updatePodInCache).
func (c *Cache) updatePod(before, now interface{}) {
	old, isPod := before.(*corev1.Pod)
	if pod, ok := now.(*corev1.Pod); ok && isPod && old.UID != pod.UID {
		c.removePod(old)
	}
	c.setPod(now, false)
}

func (c *Cache) removePod(last interface{}) {
	pod, ok := scheduler.LastState(last).(*corev1.Pod)
	if !ok {
		return
	}
	c.metrics.changed("pods")
	c.mu.Lock()
	defer c.mu.Unlock()
	if name, counted := c.on[pod.UID]; counted {
		c.forget(pod.UID, name)
	}
}

// forget removes a pod from its node. The caller holds c.mu, as for entry and replace.
func (c *Cache) forget(uid types.UID, name string) {
	delete(c.on, uid)
	less, _ := c.entry(name).without(uid)
	c.replace(name, less)
}

// entry returns a node's entry, which may be empty.
func (c *Cache) entry(name string) *node {
	if n := c.nodes[name]; n != nil {
		return n
	}
	return &node{}
}

// replace replaces a node's entry, or deletes an empty entry.
func (c *Cache) replace(name string, n *node) {
	if n.object == nil && len(n.pods) == 0 {
		delete(c.nodes, name)
		return
	}
	c.nodes[name] = n
}
