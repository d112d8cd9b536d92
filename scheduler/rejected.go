package scheduler

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxRejected is the maximum number of pods in RejectedPods. A pod that is not kept waits for the
	// scheduler's own retry, up to five minutes.
	maxRejected = 10000
	// rejectedTime is the time for which a pod is kept after its last rejection.
	rejectedTime = time.Hour
)

// RejectedPods are the pods that a plugin rejected because of something that the scheduler does not
// watch, such as a custom resource. The plugin adds a pod when it rejects it, removes it at Reserve
// and when it is deleted, and calls Retry when its decision may change. The zero value is ready to
// use.
//
// The number of pods is bounded, and only names are kept: every client that reaches an extender
// without client certificates can have any pod rejected.
type RejectedPods struct {
	mu   sync.Mutex
	pods map[types.UID]rejectedPod
	// due are the pods that a goroutine retries, if retrying is set.
	due      map[types.UID]rejectedPod
	retrying bool
}

type rejectedPod struct {
	namespace, name string
	last            time.Time // the time of the last rejection
}

// Add adds a pod that is pending according to the scheduler's informer, and ignores other pods.
func (r *RejectedPods) Add(h Handle, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if p, found := r.pods[pod.UID]; found && now.Sub(p.last) < rejectedTime/2 {
		return // Filter rejects a pod once for each node
	}
	if _, due := r.due[pod.UID]; due {
		return
	}
	if pending := PendingPod(h, pod.Namespace, pod.Name, pod.UID); pending != nil {
		r.keep(pending.UID, rejectedPod{namespace: pending.Namespace, name: pending.Name, last: now}, now)
	}
}

// keep stores a pod if there is room. The caller holds r.mu.
func (r *RejectedPods) keep(uid types.UID, pod rejectedPod, now time.Time) {
	if r.pods == nil {
		r.pods = map[types.UID]rejectedPod{}
	}
	if _, found := r.pods[uid]; !found && len(r.pods) >= maxRejected {
		for other, p := range r.pods {
			if now.Sub(p.last) > rejectedTime {
				delete(r.pods, other)
			}
		}
		if len(r.pods) >= maxRejected {
			return
		}
	}
	r.pods[uid] = pod
}

// Remove removes a pod that has a node or is gone.
func (r *RejectedPods) Remove(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, pod)
	delete(r.due, pod)
}

// Retry removes all pods and makes the scheduler retry the ones that are still pending. If a retry
// fails, the pod stays for the next time, and the failure is logged in the plugin's name.
//
// Retry does not wait: each retry is a request to the API server, and a scheduler sends 50 a second
// by default. The informer that reports a change would keep all later ones in memory meanwhile.
func (r *RejectedPods) Retry(ctx context.Context, h Handle, plugin string) {
	r.RetryNamespace(ctx, h, plugin, "")
}

// RetryNamespace is Retry for the pods of a namespace only, unless it is empty.
func (r *RejectedPods) RetryNamespace(ctx context.Context, h Handle, plugin, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, p := range r.pods {
		if namespace != "" && p.namespace != namespace {
			continue
		}
		if r.due == nil {
			r.due = map[types.UID]rejectedPod{}
		}
		r.due[uid] = p
		delete(r.pods, uid)
	}
	if len(r.due) > 0 && !r.retrying {
		r.retrying = true
		go r.retryDue(ctx, h, plugin)
	}
}

// retryDue retries the pods that are due, until there are none.
func (r *RejectedPods) retryDue(ctx context.Context, h Handle, plugin string) {
	for uid, p, ok := r.nextDue(); ok; uid, p, ok = r.nextDue() {
		pod := PendingPod(h, p.namespace, p.name, uid)
		if pod == nil || time.Since(p.last) > rejectedTime {
			continue
		}
		if err := h.Activate(ctx, pod); err != nil {
			r.mu.Lock()
			r.keep(uid, p, time.Now())
			r.mu.Unlock()
			if ctx.Err() == nil {
				h.Logger(ctx).Error(err, plugin+" cannot retry a pod; it tries again after the next change", "pod",
					p.namespace+"/"+p.name)
			}
		}
	}
}

// nextDue removes one of the pods that are due. If there is none, retrying has ended.
func (r *RejectedPods) nextDue() (uid types.UID, pod rejectedPod, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, pod = range r.due {
		delete(r.due, uid)
		return uid, pod, true
	}
	r.retrying = false
	return "", rejectedPod{}, false
}

// PendingPod returns the pod with the namespace, the name and the UID from the scheduler's
// informer. It returns nil if the informer does not have the pod, if the pod has a node, and in an
// extender without a cluster.
func PendingPod(h Handle, namespace, name string, uid types.UID) *corev1.Pod {
	factory := h.SharedInformerFactory()
	if factory == nil {
		return nil
	}
	pod, err := factory.Core().V1().Pods().Lister().Pods(namespace).Get(name)
	if err != nil || pod.UID != uid || pod.Spec.NodeName != "" {
		return nil
	}
	return pod
}
