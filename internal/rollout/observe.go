package rollout

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

// observer follows the pods that a route gives to a scheduler.
type observer struct {
	scheduler string

	mu    sync.Mutex
	since time.Time
	pods  map[types.UID]*observed
}

// observed is a pod since it was routed. The times of a pod that the watch brings are this
// process's own; the times in objects are whole seconds.
type observed struct {
	name string
	// created is the pod's time. seen is when the watch brought it; zero if it was there before.
	created, seen time.Time
	// held is set while the pod has scheduling gates, gated if it ever had some: the pod's own times
	// say nothing then.
	held, gated   bool
	unschedulable bool
	// bound is set if the pod has a node, gone if it does not exist any more. wait is the time until
	// then.
	bound, gone bool
	wait        time.Duration
}

func newObserver(scheduler string, since time.Time) *observer {
	return &observer{scheduler: scheduler, since: since, pods: map[types.UID]*observed{}}
}

// observe follows the pods that are routed to a scheduler until ctx ends. It returns when it knows
// those that exist.
func observe(ctx context.Context, kube kubernetes.Interface, scheduler string) (*observer, error) {
	o := newObserver(scheduler, time.Time{})
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(
		func(l *metav1.ListOptions) { l.FieldSelector = "spec.schedulerName=" + scheduler }))
	informer := factory.Core().V1().Pods().Informer()
	if err := informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("follow the pods of scheduler %s: %w", scheduler, err)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, first bool) { o.see(object, !first, time.Now()) },
		UpdateFunc: func(_, object any) { o.see(object, true, time.Now()) },
		DeleteFunc: func(object any) { o.lose(object, time.Now()) },
	})
	if err != nil {
		return nil, fmt.Errorf("follow the pods of scheduler %s: %w", scheduler, err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("read the pods of scheduler %s: %w", scheduler, ctx.Err())
	}
	return o, nil
}

// trim removes what is not observed: there may be many pods.
func trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
			Annotations: map[string]string{ownership.AnnotationRoute: pod.Annotations[ownership.AnnotationRoute]}},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulingGates: pod.Spec.SchedulingGates},
		Status: corev1.PodStatus{Conditions: pod.Status.Conditions},
	}, nil
}

// see records a pod. watched is set if the watch brings it now.
func (o *observer) see(object any, watched bool, now time.Time) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Annotations[ownership.AnnotationRoute] != o.scheduler {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.pods[pod.UID]
	if p == nil {
		if pod.CreationTimestamp.Time.Before(o.since) {
			return
		}
		p = &observed{name: pod.Namespace + "/" + pod.Name, created: pod.CreationTimestamp.Time}
		if watched {
			p.seen = now
		}
		o.pods[pod.UID] = p
	}
	if p.held {
		p.seen = now
	}
	if p.held = len(pod.Spec.SchedulingGates) > 0; p.held {
		p.gated = true
		return
	}
	p.update(pod, now)
}

// update records what the scheduler has decided.
func (p *observed) update(pod *corev1.Pod, now time.Time) {
	var decided time.Time
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type != corev1.PodScheduled:
		case c.Status == corev1.ConditionTrue:
			decided = c.LastTransitionTime.Time
		case c.Reason == corev1.PodReasonUnschedulable:
			p.unschedulable = true
		}
	}
	if p.bound || pod.Spec.NodeName == "" {
		return
	}
	p.bound = true
	if !p.seen.IsZero() {
		p.wait = now.Sub(p.seen)
	}
	if decided.IsZero() || p.gated {
		return
	}
	stamped := decided.Sub(p.created)
	if !p.seen.IsZero() {
		stamped -= time.Second // at least so long, whenever the watch brought the pod
	}
	p.wait = max(p.wait, stamped)
}

// lose records that a pod does not exist any more.
func (o *observer) lose(object any, now time.Time) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.pods[pod.UID]; p != nil {
		p.lose(now)
	}
}

// keep records that the pods of which exist has none do not exist any more.
func (o *observer) keep(exist map[types.UID]bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, p := range o.pods {
		if !exist[uid] {
			p.lose(now)
		}
	}
}

// lose records that the pod does not exist any more.
func (p *observed) lose(now time.Time) {
	if !p.bound && !p.gone {
		p.wait, p.gone = p.age(now), true
	}
}

// age returns how long a pod waits.
func (p *observed) age(now time.Time) time.Duration {
	if p.seen.IsZero() {
		return max(0, now.Sub(p.created))
	}
	return now.Sub(p.seen)
}

// start begins the first step: it forgets the pods that are older.
func (o *observer) start(since time.Time) {
	o.forget(since, func(*observed) bool { return true })
}

// begin begins another step: it forgets the pods of the former one that wait no longer.
func (o *observer) begin(since time.Time) {
	o.forget(since, func(p *observed) bool { return p.bound || p.gone })
}

// forget removes those of the pods from before a time for which done returns true.
func (o *observer) forget(since time.Time, done func(*observed) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = since
	for uid, p := range o.pods {
		if done(p) && p.created.Before(since) {
			delete(o.pods, uid)
		}
	}
}

// look returns the pods of the step.
func (o *observer) look(now time.Time) (pods []stage.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.pods {
		if p.held {
			continue
		}
		wait := p.wait
		if !p.bound && !p.gone {
			wait = p.age(now)
		}
		pods = append(pods, stage.Pod{Name: p.name, Wait: wait, Bound: p.bound, Unschedulable: p.unschedulable})
	}
	return pods
}
