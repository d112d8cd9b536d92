package gpupacking

import (
	"context"
	"sort"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const (
	// measureInterval is the interval between measurements of the workload.
	measureInterval = 30 * time.Second
	// maxClasses limits the classes of a measured workload to the most frequent ones, because every
	// one costs time for every node.
	maxClasses = 32
)

type mix struct {
	mu      sync.RWMutex
	current workload
}

func (m *mix) get() workload {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.current
}

func (m *mix) set(w workload) {
	m.mu.Lock()
	m.current = w
	m.mu.Unlock()
}

// follow measures the workload of the pods in the cluster until ctx is done.
func (m *mix) follow(ctx context.Context, pods corelisters.PodLister, synced cache.InformerSynced,
	s *settings, log scheduler.Logger) {
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return
	}
	ticker := time.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		all, err := pods.List(labels.Everything())
		if err != nil {
			log.Error(err, "GPUPacking cannot list the pods; the last workload is used")
		} else {
			m.set(measure(all, s))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// measure returns the workload of the pods that request the resource, running ones and pending
// ones. Other pods are left out: the free devices are of no use to them on any node, so they change
// no decision.
func measure(pods []*corev1.Pod, s *settings) workload {
	var t tally
	for _, pod := range pods {
		if d := demandOf(pod, s.resource); d.gpu > 0 && !scheduler.PodFinished(pod) {
			t.add(d, modelsOf(pod, s.modelLabel), 1)
		}
	}
	w := t.workload()
	sort.Slice(w, func(i, j int) bool {
		a, b := w[i], w[j]
		switch {
		case a.share != b.share:
			return a.share > b.share
		case a.gpu != b.gpu:
			return a.gpu < b.gpu
		}
		return a.cpu < b.cpu
	})
	if len(w) > maxClasses {
		w = w[:maxClasses]
	}
	return w
}

// tally counts pods by their demand.
type tally struct {
	total float64
	order []demand
	// counts are the pods of each demand: their share is their number.
	counts map[demand]*class
}

// add adds pods that require one of some models, or may have any without models.
func (t *tally) add(d demand, models []string, number float64) {
	c := t.counts[d]
	if c == nil {
		if t.counts == nil {
			t.counts = map[demand]*class{}
		}
		c = &class{demand: d}
		t.counts[d], t.order = c, append(t.order, d)
	}
	t.total += number
	c.share += number
	if len(models) == 0 {
		return
	}
	if c.models == nil {
		c.models = map[string]float64{}
	}
	c.choosy += number
	for i, model := range models {
		if !containsModel(models[:i], model) {
			c.models[model] += number
		}
	}
}

func containsModel(models []string, model string) bool {
	for _, m := range models {
		if m == model {
			return true
		}
	}
	return false
}

// workload returns the classes in the order in which their first pods were added.
func (t *tally) workload() (w workload) {
	for _, d := range t.order {
		c := *t.counts[d]
		c.choosy /= c.share
		for model := range c.models {
			c.models[model] /= c.share
		}
		c.share /= t.total
		w = append(w, c)
	}
	return w
}

// modelsOf returns the models of which a pod requires one: the values of a node label in its node
// selector, or in each term of its required node affinity. Without them it may have any.
func modelsOf(pod *corev1.Pod, label string) []string {
	if label == "" {
		return nil
	}
	if model, ok := pod.Spec.NodeSelector[label]; ok {
		return []string{model}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var models []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		values := valuesOf(term, label)
		if len(values) == 0 {
			return nil
		}
		models = append(models, values...)
	}
	return models
}

// valuesOf returns the values that a term has for a label.
func valuesOf(term corev1.NodeSelectorTerm, label string) []string {
	for _, e := range term.MatchExpressions {
		if e.Key == label && e.Operator == corev1.NodeSelectorOpIn {
			return e.Values
		}
	}
	return nil
}

// demandOf returns a pod's demand. Its runtime's overhead takes no devices.
func demandOf(pod *corev1.Pod, name corev1.ResourceName) demand {
	overhead := pod.Spec.Overhead[name]
	return demand{
		cpu: scheduler.PodRequest(pod, corev1.ResourceCPU),
		gpu: scheduler.PodRequest(pod, name) - overhead.Value(),
	}
}

// fewContainers is up to how many containers a pod's demand is computed each time.
const fewContainers = 8

// knownDemand is the demand for a pod version.
type knownDemand struct {
	version string
	demand  demand
}

// demandOn returns the demand of a pod on a node. All demands on a node are needed for each pod
// that is placed, and a pod may have thousands of containers.
func (g *GPUPacking) demandOn(pod *corev1.Pod) demand {
	if len(pod.Spec.Containers)+len(pod.Spec.InitContainers) <= fewContainers || pod.ResourceVersion == "" {
		return demandOf(pod, g.settings.resource)
	}
	if value, found := g.demands.Load(pod.UID); found {
		if known, ok := value.(knownDemand); ok && known.version == pod.ResourceVersion {
			return known.demand
		}
	}
	d := demandOf(pod, g.settings.resource)
	g.demands.Store(pod.UID, knownDemand{version: pod.ResourceVersion, demand: d})
	return d
}

// forgetGone removes a pod that was deleted or has finished.
func (g *GPUPacking) forgetGone(pod *corev1.Pod) {
	g.forget(pod)
	g.demands.Delete(pod.UID)
}
