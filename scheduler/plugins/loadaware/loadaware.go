// Package loadaware is a portable plugin that scores and filters nodes by their measured load,
// which it reads from Prometheus.
//
// A goroutine for each metric queries Prometheus and publishes the results, so Filter and Score
// never wait. The expected load of newly assigned pods is added to the measured load until it is
// measured too, so that a pod burst does not go to a single idle node. A node without fresh data
// gets the other nodes' mean score. While Prometheus is unavailable this applies to every node, and
// the plugin has no effect.
package loadaware

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "LoadAware"

// noData is the score of a node whose load is unknown. NormalizeScore replaces it.
const noData = -1

// LoadAware scores and filters nodes by their load.
type LoadAware struct {
	logs     func(context.Context) scheduler.Logger
	settings *settings
	sources  []*source
	expected *expectedLoads
	filters  []filter
	now      func() time.Time

	rejections *rejections
	measured   chan struct{} // receives after each query
	nodes      func() ([]*corev1.Node, bool)
	pending    findPending
	activate   func(context.Context, *corev1.Pod) error
}

// filter is one condition of Filter, with its statuses and counters.
type filter struct {
	source        *source
	max           float64 // fraction of full, or 0 for no limit
	over, stale   *scheduler.Status
	overs, stales prometheus.Counter
}

// New returns the plugin configured by its arguments and queries Prometheus until ctx is done. It
// does not wait for the first result.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*LoadAware, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(h.Metrics())
	if err != nil {
		return nil, err
	}
	l := newPlugin(s, m, h.Logger, time.Now)
	synced := l.watch(h)
	prometheusClient := newClient(s)
	for _, src := range l.sources {
		src.query, src.log = prometheusClient.query, h.Logger(ctx)
		go func(src *source) {
			// The coverage of the nodes is reported, so the informer must have the nodes.
			if cache.WaitForCacheSync(ctx.Done(), synced...) {
				src.run(ctx)
			}
		}(src)
	}
	go l.retryAfterQueries(ctx)
	return l, nil
}

// newPlugin returns a plugin whose sources are not started.
func newPlugin(s *settings, m *metrics, logs func(context.Context) scheduler.Logger, now func() time.Time) *LoadAware {
	l := &LoadAware{
		logs: logs, settings: s, now: now, expected: newExpectedLoads(s.Metrics, s.window, s.staleAfter),
		rejections: newRejections(), measured: make(chan struct{}, 1),
		nodes: func() ([]*corev1.Node, bool) { return nil, false },
	}
	for i, metric := range s.Metrics {
		src := &source{
			metric: metric, index: i, interval: s.interval, staleAfter: s.staleAfter,
			expected: l.expected, metrics: m, now: now, measured: l.measured,
			nodes: func() ([]*corev1.Node, bool) { return l.nodes() },
		}
		l.sources = append(l.sources, src)
		if !s.filtersBy(metric) {
			continue
		}
		l.filters = append(l.filters, filter{
			source: src, max: metric.MaxPercent / 100,
			// Measured load does not change when preemption simulates the removal of pods.
			over:   scheduler.Unresolvable(fmt.Sprintf("%s load is %v%% or more", metric.Name, metric.MaxPercent)),
			stale:  scheduler.Unresolvable(fmt.Sprintf("no fresh data on %s load", metric.Name)),
			overs:  m.filtered.WithLabelValues(metric.Name, "load"),
			stales: m.filtered.WithLabelValues(metric.Name, "stale"),
		})
	}
	return l
}

// watch reads nodes and, to retry pods that Filter rejects, pods from the scheduler's informers. An
// extender without a cluster has no informers.
func (l *LoadAware) watch(h scheduler.Handle) (synced []cache.InformerSynced) {
	factory := h.SharedInformerFactory()
	if factory == nil {
		return nil
	}
	nodes := factory.Core().V1().Nodes()
	nodeLister := nodes.Lister()
	l.nodes = func() ([]*corev1.Node, bool) {
		all, err := nodeLister.List(labels.Everything())
		return all, err == nil
	}
	synced = append(synced, nodes.Informer().HasSynced)
	if len(l.filters) == 0 {
		return synced
	}
	pods := factory.Core().V1().Pods()
	l.pending = func(namespace, name string, uid types.UID) *corev1.Pod {
		return scheduler.PendingPod(h, namespace, name, uid)
	}
	l.activate = h.Activate
	return append(synced, pods.Informer().HasSynced)
}

// Rules validates the arguments and returns the permission to retry pods that Filter rejected. A
// scheduler has it from system:kube-scheduler, too; an extender has it from here only.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	filters := false
	for _, m := range s.Metrics {
		filters = filters || s.filtersBy(m)
	}
	if !filters {
		return nil, nil
	}
	return []rbacv1.PolicyRule{scheduler.ActivateRule()}, nil
}

// Name returns the plugin's name.
func (l *LoadAware) Name() string { return Name }

// nodeInfo is the part of scheduler.NodeInfo that load reads.
type nodeInfo interface {
	Node() *corev1.Node
	Allocatable() scheduler.Resources
}

// load returns a node's load for a metric, measured and expected, as a fraction of full.
func (l *LoadAware) load(src *source, node nodeInfo) (float64, bool) {
	measured, ok := src.readings().of(node.Node())
	if !ok {
		return 0, false
	}
	return measured + l.expected.onNode(src.index, node), true
}

// findRejecting returns the first filter that rejects a node, nil if none does, and the node's load
// of its metric, if known.
func (l *LoadAware) findRejecting(node nodeInfo) (by *filter, load float64, known bool) {
	for i := range l.filters {
		f := &l.filters[i]
		load, known := l.load(f.source, node)
		if known && f.max > 0 && load >= f.max || !known && l.settings.Stale == StaleExclude && f.source.covers() {
			return f, load, known
		}
	}
	return nil, 0, false
}

// Filter rejects nodes whose load is too high and, with StaleExclude, nodes whose load is unknown.
func (l *LoadAware) Filter(ctx context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	f, load, known := l.findRejecting(node)
	if f == nil {
		return nil
	}
	if l.activate != nil {
		l.rejections.add(pod, node.Node().Name, l.pending)
	}
	if !known {
		f.stales.Inc()
		if log := l.logs(ctx); log.Enabled(5) {
			log.Info(5, "LoadAware rejected a node without fresh data", "namespace", pod.Namespace, "pod", pod.Name, "node",
				node.Node().Name,
				"metric", f.source.metric.Name)
		}
		return f.stale
	}
	f.overs.Inc()
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware rejected a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
			"metric", f.source.metric.Name, "percent", 100*load, "maxPercent", 100*f.max)
	}
	return f.over
}

// Reserve adds the pod's expected load to the node.
func (l *LoadAware) Reserve(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	l.rejections.forget(pod.UID)
	if l.settings.ExpectedLoad.Disabled {
		return nil
	}
	amounts := l.settings.expectedLoad(pod)
	l.expected.add(pod.UID, node, amounts, l.now())
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware expects the load of a pod on a node", "namespace", pod.Namespace, "pod", pod.Name, "node",
			node, "amounts", amounts)
	}
	return nil
}

// Unreserve removes the expected load.
func (l *LoadAware) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	l.expected.pods.Forget(pod.UID)
}

// PostBind records the time of binding: later measurements include the pod.
func (l *LoadAware) PostBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) {
	l.expected.bind(pod.UID, node, l.now())
}

// Sign declares that the results do not depend on the pod. They depend on the node's load, to which
// only the node's own pods add. The load also changes with time, but the results are reused for
// half a second at most.
func (l *LoadAware) Sign(context.Context, *corev1.Pod) (interface{}, *scheduler.Status) {
	return nil, nil
}

// Ready returns an error if a metric has no fresh data of any node. It is used by an extender's
// /readyz, not by schedulers.
func (l *LoadAware) Ready() error {
	for _, src := range l.sources {
		if !src.covers() {
			return fmt.Errorf("no fresh data of any node for metric %s: does Prometheus answer its query?", src.metric.Name)
		}
	}
	return nil
}
