// Package loadaware is a portable plugin that scores and filters nodes by their measured load, which it reads
// from Prometheus.
//
// A goroutine for each metric queries Prometheus and publishes the results, so Filter and Score never wait. The
// expected load of pods that were just assigned is added to the measured load until it is measured too, so that
// a burst of pods does not go to a single idle node. A node without fresh data gets the mean score of the
// others. While Prometheus is unavailable this applies to every node, and the plugin has no effect.
package loadaware

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	promises *promises
	filters  []filter
	now      func() time.Time
}

// filter is one condition of Filter, with its statuses and counters.
type filter struct {
	source        *source
	max           float64 // fraction of full; 0: no limit
	over, stale   *scheduler.Status
	overs, stales prometheus.Counter
}

// New returns the plugin configured by its arguments and queries Prometheus until ctx is done. It does not wait
// for the first result.
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
	nodes, synced := nodeLister(h)
	prometheusClient := newClient(s)
	for _, src := range l.sources {
		src.query, src.nodes, src.log = prometheusClient.query, nodes, h.Logger(ctx)
		go func(src *source) {
			// The coverage of the nodes is reported, so the informer must have the nodes.
			if cache.WaitForCacheSync(ctx.Done(), synced) {
				src.run(ctx)
			}
		}(src)
	}
	return l, nil
}

// newPlugin returns a plugin whose sources are not started.
func newPlugin(s *settings, m *metrics, logs func(context.Context) scheduler.Logger, now func() time.Time) *LoadAware {
	l := &LoadAware{logs: logs, settings: s, now: now, promises: newPromises(s.Metrics, s.window, s.staleAfter)}
	for i, metric := range s.Metrics {
		src := &source{
			metric: metric, index: i, interval: s.interval, staleAfter: s.staleAfter, promises: l.promises, metrics: m, now: now,
			nodes: func() ([]*corev1.Node, bool) { return nil, false },
		}
		l.sources = append(l.sources, src)
		if metric.MaxPercent == 0 && s.Stale != StaleExclude {
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

// nodeLister lists the nodes in the scheduler's informer, and reports whether the informer is synced.
func nodeLister(h scheduler.Handle) (list func() ([]*corev1.Node, bool), synced cache.InformerSynced) {
	factory := h.SharedInformerFactory()
	if factory == nil {
		return func() ([]*corev1.Node, bool) { return nil, false }, func() bool { return true }
	}
	nodes := factory.Core().V1().Nodes()
	lister := nodes.Lister()
	list = func() ([]*corev1.Node, bool) {
		all, err := lister.List(labels.Everything())
		return all, err == nil
	}
	return list, nodes.Informer().HasSynced
}

// Rules validates the arguments. It returns no rules: every scheduler may read nodes.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	_, err := decode(args)
	return nil, err
}

// Name returns the plugin's name.
func (l *LoadAware) Name() string { return Name }

// load returns a node's load of a metric, measured and expected, as a fraction of full.
func (l *LoadAware) load(src *source, node scheduler.NodeInfo) (float64, bool) {
	measured, ok := src.readings().of(node.Node())
	if !ok {
		return 0, false
	}
	return measured + l.promises.share(src.index, node), true
}

// Filter rejects nodes whose load is too high and, with StaleExclude, nodes whose load is unknown.
func (l *LoadAware) Filter(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node scheduler.NodeInfo) *scheduler.Status {
	for i := range l.filters {
		f := &l.filters[i]
		load, ok := l.load(f.source, node)
		switch {
		case ok && (f.max == 0 || load < f.max):
			continue
		case ok:
			f.overs.Inc()
			if log := l.logs(ctx); log.Enabled(5) {
				log.Info(5, "LoadAware rejected a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
					"metric", f.source.metric.Name, "percent", 100*load, "maxPercent", 100*f.max)
			}
			return f.over
		case l.settings.Stale == StaleExclude && f.source.covers():
			f.stales.Inc()
			if log := l.logs(ctx); log.Enabled(5) {
				log.Info(5, "LoadAware rejected a node without fresh data", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
					"metric", f.source.metric.Name)
			}
			return f.stale
		}
	}
	return nil
}

// Score returns the weighted mean of the free fraction of each metric.
func (l *LoadAware) Score(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node scheduler.NodeInfo) (int64, *scheduler.Status) {
	free, weights := 0.0, 0.0
	for _, src := range l.sources {
		weight := float64(*src.metric.Weight)
		load, ok := l.load(src, node)
		if !ok || weight == 0 {
			continue
		}
		weights += weight
		if load < 1 {
			free += weight * (1 - load)
		}
	}
	score := int64(noData)
	if weights > 0 {
		score = int64(math.Round(float64(scheduler.MaxNodeScore) * free / weights))
	}
	if log := l.logs(ctx); log.Enabled(10) {
		log.Info(10, "LoadAware scored a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name, "score", score)
	}
	return score, nil
}

// NormalizeScore gives nodes whose load is unknown the mean score of the others.
func (l *LoadAware) NormalizeScore(ctx context.Context, _ scheduler.State, pod *corev1.Pod, scores []scheduler.NodeScore) *scheduler.Status {
	sum, known := int64(0), int64(0)
	for i := range scores {
		if scores[i].Score != noData {
			sum += scores[i].Score
			known++
		}
	}
	mean := scheduler.MinNodeScore
	if known > 0 {
		mean = (sum + known/2) / known
	}
	for i := range scores {
		if scores[i].Score == noData {
			scores[i].Score = mean
		}
	}
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware scored nodes", "namespace", pod.Namespace, "pod", pod.Name, "nodes", len(scores), "withoutData", int64(len(scores))-known, "mean", mean)
	}
	return nil
}

// Reserve adds the pod's expected load to the node.
func (l *LoadAware) Reserve(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	if l.settings.Promises.Disabled {
		return nil
	}
	amounts := l.settings.promised(pod)
	l.promises.make(pod.UID, node, amounts, l.now())
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware expects the load of a pod on a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node, "amounts", amounts)
	}
	return nil
}

// Unreserve removes the expected load.
func (l *LoadAware) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	l.promises.takeBack(pod.UID)
}

// PostBind records the time of binding: later measurements include the pod.
func (l *LoadAware) PostBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	l.promises.keep(pod.UID, l.now())
}
