// Package loadaware is a portable plugin that scores and filters nodes by their real load, which it reads from Prometheus.
//
// A goroutine per metric asks Prometheus and publishes what it got; Filter and Score read that and wait for nothing. What a pod that was
// just assigned will bring is added to what was measured until it is measured too, so that a burst of pods does not
// run to one idle node. A node without fresh data scores the mean of the others; when Prometheus is away this holds for every
// node, and the plugin has no say.
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

// noData is what Score returns for a node whose load is not known; NormalizeScore replaces it.
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

// filter is what Filter has to look at, with answers made in advance.
type filter struct {
	source        *source
	max           float64 // share of full; 0: no limit
	over, stale   *scheduler.Status
	overs, stales prometheus.Counter
}

// New makes the plugin of its arguments and starts to ask Prometheus, until ctx is done. It does not wait for an answer.
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
			// Coverage is told of the cluster's nodes; before the informer has them it would be told wrongly.
			if cache.WaitForCacheSync(ctx.Done(), synced) {
				src.run(ctx)
			}
		}(src)
	}
	return l, nil
}

// newPlugin makes a plugin whose sources are not running and ask nobody.
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
			// The load that was measured does not go away when preemption thinks pods away.
			over:   scheduler.Unresolvable(fmt.Sprintf("%s load is %v%% or more", metric.Name, metric.MaxPercent)),
			stale:  scheduler.Unresolvable(fmt.Sprintf("no fresh data on %s load", metric.Name)),
			overs:  m.filtered.WithLabelValues(metric.Name, "load"),
			stales: m.filtered.WithLabelValues(metric.Name, "stale"),
		})
	}
	return l
}

// nodeLister returns the cluster's nodes from the scheduler's own informer, and whether it is filled.
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

// Rules checks the arguments and returns no rules: what the plugin reads of the cluster, every scheduler reads.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	_, err := decode(args)
	return nil, err
}

// Name returns the plugin's name.
func (l *LoadAware) Name() string { return Name }

// load returns a node's load for a metric, measured and promised, as a share of full.
func (l *LoadAware) load(src *source, node scheduler.NodeInfo) (float64, bool) {
	measured, ok := src.readings().of(node.Node())
	if !ok {
		return 0, false
	}
	return measured + l.promises.share(src.index, node), true
}

// Filter rejects nodes whose load is too high, and, if told so, those whose load is not known while that of others is.
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
				log.Info(5, "LoadAware filtered a node out", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
					"metric", f.source.metric.Name, "percent", 100*load, "maxPercent", 100*f.max)
			}
			return f.over
		case l.settings.Stale == StaleExclude && f.source.covers():
			f.stales.Inc()
			if log := l.logs(ctx); log.Enabled(5) {
				log.Info(5, "LoadAware filtered a node out that has no fresh data", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
					"metric", f.source.metric.Name)
			}
			return f.stale
		}
	}
	return nil
}

// Score prefers nodes with little load: the weighted mean of what is free of each metric.
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

// NormalizeScore gives nodes whose load is not known the mean of the others.
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

// Reserve promises the pod's load to the node.
func (l *LoadAware) Reserve(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	if l.settings.Promises.Disabled {
		return nil
	}
	amounts := l.settings.promised(pod)
	l.promises.make(pod.UID, node, amounts, l.now())
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware promised a pod's load to a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node, "amounts", amounts)
	}
	return nil
}

// Unreserve takes the promise back.
func (l *LoadAware) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	l.promises.takeBack(pod.UID)
}

// PostBind notes that the pod is on its way, so that what is measured from now on includes it.
func (l *LoadAware) PostBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	l.promises.keep(pod.UID, l.now())
}
