package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// WatchPods calls seen for each pod that the scheduler's informer reports as added or changed, and
// gone for each pod that it reports as deleted. A finished pod is reported as deleted from 1.22 on.
// Both run one at a time; seen may be nil.
//
// After a gap in the watch, a pod that was deleted and created again under the same name arrives as
// a change. WatchPods calls gone for the old pod, as kube-scheduler does (updatePodInCache in
// eventhandlers.go).
func WatchPods(h Handle, seen, gone func(pod *corev1.Pod)) {
	if seen == nil {
		seen = func(*corev1.Pod) {}
	}
	// The results differ between releases of client-go. They are not needed: the handler is never
	// removed.
	h.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(podHandler(seen, gone)) //nolint:errcheck
}

func podHandler(seen, gone func(pod *corev1.Pod)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(added interface{}) {
			if pod, ok := added.(*corev1.Pod); ok {
				seen(pod)
			}
		},
		UpdateFunc: func(before, after interface{}) {
			pod, ok := after.(*corev1.Pod)
			if !ok {
				return
			}
			if old, ok := before.(*corev1.Pod); ok && old.UID != pod.UID {
				gone(old)
			}
			seen(pod)
		},
		DeleteFunc: func(deleted interface{}) {
			if pod, ok := LastState(deleted).(*corev1.Pod); ok {
				gone(pod)
			}
		},
	}
}

// LastState returns the last known state of an object that an informer reports as deleted. The
// informer wraps it if it missed the deletion.
func LastState(deleted interface{}) interface{} {
	if missed, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return deleted
}
