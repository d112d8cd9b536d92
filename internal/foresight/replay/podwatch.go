package replay

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
)

// podWatch knows a scheduler's decisions about the pods on an API server.
type podWatch struct {
	// changed has an element after a change.
	changed chan struct{}

	mu   sync.Mutex
	pods map[string]podState // by namespace and name
	// gone are the pods that were removed since the last call to removed, with their last node.
	gone map[string]string
}

// podState is a pod's observed state.
type podState struct {
	node, nominated string
	// refused is set if the scheduler has found no node for the pod, reason is its message.
	refused bool
	reason  string
}

// watchPods starts to watch, and returns when all pods are known.
func watchPods(ctx context.Context, cfg *rest.Config) (*podWatch, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	w := &podWatch{changed: make(chan struct{}, 1), pods: map[string]podState{}, gone: map[string]string{}}
	// Lists are read from etcd: the API server's watch cache may be behind.
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) {
			if o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
		}), informers.WithTransform(onlyDecision))
	informer := factory.Core().V1().Pods().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.set, UpdateFunc: func(_, o any) { w.set(o) }, DeleteFunc: w.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("read the pods: %w", ctx.Err())
	}
	return w, nil
}

// onlyDecision keeps the fields that podWatch reads: there may be very many pods.
func onlyDecision(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
			NominatedNodeName: pod.Status.NominatedNodeName},
	}, nil
}

func (w *podWatch) set(o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	s := podState{node: pod.Spec.NodeName, nominated: pod.Status.NominatedNodeName}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulerError {
			s.refused, s.reason = true, c.Message
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[pod.Namespace+"/"+pod.Name] = s
	w.notify()
}

func (w *podWatch) remove(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	delete(w.pods, key)
	w.gone[key] = pod.Spec.NodeName
	w.notify()
}

func (w *podWatch) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// all returns the pods.
func (w *podWatch) all() map[string]podState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.pods)
}

// get returns a pod's state, and whether it is there.
func (w *podWatch) get(key string) (podState, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.pods[key]
	return s, ok
}

// removed returns the pods that are gone since the last call, with their nodes.
func (w *podWatch) removed() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := w.gone
	w.gone = map[string]string{}
	return gone
}

// await waits until done returns true, which is called after each change, and at least once in a
// while.
func (w *podWatch) await(ctx context.Context, s *kubescheduler.Process, done func(idle bool) bool) error {
	tick := time.NewTicker(kubescheduler.PollInterval)
	defer tick.Stop()
	idle := 0
	for {
		if done(idle >= kubescheduler.StablePolls) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Done():
			return s.Ended()
		case <-w.changed:
		case <-tick.C:
			if idle++; !s.IsIdle(ctx) {
				idle = 0
			}
		}
	}
}
