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
	name corev1.ResourceName, log scheduler.Logger) {
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
			m.set(measure(all, name))
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
func measure(pods []*corev1.Pod, name corev1.ResourceName) workload {
	counts, total := map[demand]int{}, 0
	for _, pod := range pods {
		if d := demandOf(pod, name); d.gpu > 0 && !scheduler.PodFinished(pod) {
			counts[d]++
			total++
		}
	}
	var w workload
	for d, count := range counts {
		w = append(w, class{demand: d, share: float64(count) / float64(total)})
	}
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
