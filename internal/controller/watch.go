package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// changedServers is the event that the API servers' versions have changed.
type changedServers = event.GenericEvent

// watch starts the reconciler for an object when it changes, when one of the scheduler's objects
// changes, and, for all objects, when the API servers' versions change.
func (r *reconciler) watch(mgr manager.Manager, o controller.Options) error {
	changed := builder.WithPredicates(predicate.Funcs{
		// The objects that this controller creates itself.
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: isChange,
	})
	b := builder.ControllerManagedBy(mgr).For(&v1alpha1.CustomScheduler{},
		builder.WithPredicates(predicate.GenerationChangedPredicate{})).WithOptions(o).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.users), changed).
		WatchesRawSource(source.Channel(r.changed, handler.EnqueueRequestsFromMapFunc(r.all)))
	for _, kind := range watchedKinds() {
		b = b.WatchesMetadata(kind, handler.EnqueueRequestsFromMapFunc(r.users), changed)
	}
	return b.Complete(r)
}

// isChange reports whether an update may be drift, or changes whether a Deployment is available.
func isChange(e event.UpdateEvent) bool {
	before, isDeployment := e.ObjectOld.(*appsv1.Deployment)
	after, _ := e.ObjectNew.(*appsv1.Deployment)
	if !isDeployment || after == nil {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}
	return before.Generation != after.Generation || isAvailable(before) != isAvailable(after)
}

func isAvailable(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas > 0 }

// users returns the objects for which an object of a scheduler or extender is deployed, and makes
// sure that they are compared.
func (r *reconciler) users(ctx context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[ownership.LabelInstance]
	return r.requests(ctx, func(o *v1alpha1.CustomScheduler) bool {
		found := slices.Contains(deployedNames(o), name)
		if found {
			r.compared.Delete(client.ObjectKeyFromObject(o))
		}
		return found
	})
}

// all returns all objects.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(*v1alpha1.CustomScheduler) bool { return true })
}

// requests returns the objects in the cache that wanted accepts.
func (r *reconciler) requests(ctx context.Context, wanted func(*v1alpha1.CustomScheduler) bool) []reconcile.Request {
	list := &v1alpha1.CustomSchedulerList{}
	// They are only read here: copies of all objects for each event are expensive.
	if err := r.List(ctx, list, client.InNamespace(r.o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		r.log.Error("list objects after a change: " + err.Error())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
