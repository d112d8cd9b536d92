package scheduler

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RejectedPods are the pods that a plugin rejected because of something that the scheduler does not
// watch, such as a custom resource. The plugin adds a pod when it rejects it, removes it at Reserve
// and when it is deleted, and calls Retry when its decision may be another one. The zero value is
// ready to use.
type RejectedPods struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

// Add adds a pod.
func (r *RejectedPods) Add(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = map[types.UID]*corev1.Pod{}
	}
	r.pods[pod.UID] = pod
}

// Remove removes a pod that has a node or is gone.
func (r *RejectedPods) Remove(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, pod)
}

// Retry removes all pods and makes the scheduler retry them. If a retry fails, the pod stays for
// the next time, and the failure is logged in the name of the plugin.
func (r *RejectedPods) Retry(ctx context.Context, h Handle, plugin string) {
	r.mu.Lock()
	pods := r.pods
	r.pods = nil
	r.mu.Unlock()
	for _, pod := range pods {
		if err := h.Activate(ctx, pod); err != nil {
			r.Add(pod)
			if ctx.Err() == nil {
				h.Logger(ctx).Error(err, plugin+" cannot retry a pod; it tries again after the next change", "pod",
					pod.Namespace+"/"+pod.Name)
			}
		}
	}
}
