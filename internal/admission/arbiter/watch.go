package arbiter

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// machine is what a ledger needs of a node.
type machine struct {
	metav1.ObjectMeta
	allocatable scheduler.Amounts
}

// compact is the transform of the informers, which hold every pod of the cluster.
func compact(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return NewPod(o), nil
	case *corev1.Node:
		return &machine{metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			scheduler.NewAmounts(o.Status.Allocatable)}, nil
	}
	return object, nil
}

// watch returns the informers that keep a ledger up to date, and whether they have filled it.
func watch(kube kubernetes.Interface, l *Ledger) ([]cache.SharedIndexInformer, func() bool, error) {
	var all []cache.SharedIndexInformer
	var synced []cache.InformerSynced
	set := func(object any) {
		switch o := object.(type) {
		case *Pod:
			l.SetPod(o)
		case *machine:
			l.SetNode(o.Name, o.allocatable)
		}
	}
	for _, kind := range []struct {
		resource string
		example  runtime.Object
		selector fields.Selector
	}{
		{"nodes", &corev1.Node{}, fields.Everything()},
		// Pods that have ended take no room: for the informer they are deleted.
		{"pods", &corev1.Pod{}, fields.AndSelectors(
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))},
	} {
		informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), kind.resource,
			metav1.NamespaceAll, kind.selector), kind.example, 0, cache.Indexers{})
		if err := informer.SetTransform(compact); err != nil {
			return nil, nil, fmt.Errorf("watch %s: %w", kind.resource, err)
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: set, UpdateFunc: func(_, now any) { set(now) }, DeleteFunc: func(last any) {
				switch o := scheduler.LastState(last).(type) {
				case *Pod:
					l.DeletePod(o.UID)
				case *machine:
					l.DeleteNode(o.Name)
				}
			},
		})
		if err != nil {
			return nil, nil, fmt.Errorf("watch %s: %w", kind.resource, err)
		}
		all, synced = append(all, informer), append(synced, registration.HasSynced)
	}
	return all, func() bool {
		for _, s := range synced {
			if !s() {
				return false
			}
		}
		return true
	}, nil
}
