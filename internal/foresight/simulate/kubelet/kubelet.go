// Package kubelet replaces, in a simulation, the kubelets and controllers that a scheduler waits
// for or reads: kubelets end the pods that it evicts, volume controllers bind and provision the
// volumes that it selects, and others release the devices of pods that are gone and compute how
// many disruptions a budget allows.
package kubelet

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Actors run until their context ends.
type Actors struct {
	kube  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[task]
	log   *zap.Logger
	vols  *volumes
	devs  *devices // nil: none
	// budgets is nil if there are none.
	budgets *budgets
}

// task is an object that an actor looks at.
type task struct {
	what            string // taskPod, taskClaim, taskDevice or taskGone
	namespace, name string
	uid             string
}

const (
	taskPod   = "pod"
	taskClaim = "claim"
	// taskDevice is a ResourceClaim whose devices are not ready, taskGone a pod that was removed.
	taskDevice = "devices of claim"
	taskGone   = "devices of pod"
	// taskBudget are the budgets in a namespace.
	taskBudget = "budgets"
)

// Options configure the actors. The zero value is ready to use.
type Options struct {
	// Log may be nil.
	Log *zap.Logger
	// Note, if it is not nil, is called with deviations from a cluster.
	Note func(text string)
	// Bound, if it is not nil, is called for each pod that gets a node.
	Bound func(namespace, name string)
	// Claims is the resource for the ResourceClaims, in a version that the API server serves. If it is
	// empty, there are none.
	Claims schema.GroupVersionResource
	// Budgets are the PodDisruptionBudgets, and BudgetResource is their resource.
	Budgets        []Budget
	BudgetResource schema.GroupVersionResource
}

// Start starts the actors for an API server, and returns when they know its objects. Pods that are
// being deleted then stay so. wait returns when all have ended, after ctx.
func Start(ctx context.Context, cfg *rest.Config, o Options) (wait func(), err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	a := &Actors{
		kube: kube, log: o.Log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[task]()),
	}
	ready, err := a.watch(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	if !cache.WaitForCacheSync(ctx.Done(), ready...) {
		return nil, fmt.Errorf("read the objects of the simulation: %w", ctx.Err())
	}
	if a.budgets != nil {
		for namespace := range a.budgets.all {
			if err := a.budgets.update(ctx, namespace); err != nil {
				return nil, fmt.Errorf("write the status of budgets: %w", err)
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.work(ctx)
	}()
	go func() {
		<-ctx.Done()
		a.queue.ShutDown()
	}()
	return func() { <-done }, nil
}

// watch watches the actors' objects.
func (a *Actors) watch(ctx context.Context, cfg *rest.Config, o Options) ([]cache.InformerSynced, error) {
	ready, err := a.watchVolumes(ctx, o.Note)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	if len(o.Budgets) > 0 {
		a.budgets = newBudgets(client, o)
	}
	if !o.Claims.Empty() {
		claimsReady, err := a.watchDevices(ctx, client, o.Claims)
		if err != nil {
			return nil, err
		}
		ready = append(ready, claimsReady)
	}
	podsReady, err := a.watchPods(ctx, cfg, o.Bound)
	return append(ready, podsReady), err
}

// work handles the tasks in the queue, one after the other.
func (a *Actors) work(ctx context.Context) {
	for {
		t, shutdown := a.queue.Get()
		if shutdown {
			return
		}
		err := a.handle(ctx, t)
		switch {
		case err == nil:
			a.queue.Forget(t)
		case ctx.Err() == nil:
			a.log.Warn("simulated controller failed, trying again", zap.String("object", t.what+" "+t.namespace+"/"+t.name),
				zap.Error(err))
			a.queue.AddRateLimited(t)
		}
		a.queue.Done(t)
	}
}

func (a *Actors) handle(ctx context.Context, t task) error {
	switch t.what {
	case taskPod:
		return a.endPod(ctx, t)
	case taskDevice:
		return a.devs.prepare(ctx, t.namespace, t.name)
	case taskGone:
		return a.devs.release(ctx, t.uid)
	case taskBudget:
		return a.budgets.update(ctx, t.namespace)
	}
	return a.vols.reconcile(ctx, t.namespace, t.name)
}

// watchPods enqueues pods that the scheduler deletes, and reports pods that it binds. Only their
// metadata is read, and little of it is kept: there may be very many pods.
func (a *Actors) watchPods(ctx context.Context, cfg *rest.Config,
	bound func(namespace, name string)) (cache.InformerSynced, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	tweak := func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
		// Informers list with resource version "0", which the API server answers from its watch cache.
		// The cache may be behind the snapshot's loader: a pod that was loaded as being deleted would
		// arrive as an update, as if the scheduler had evicted it, and would be removed.
		if o.ResourceVersion == "0" {
			o.ResourceVersion = ""
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(
		client, pods, metav1.NamespaceAll, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		tweak).Informer()
	if err := informer.SetTransform(a.identity); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if a.budgets != nil {
		a.budgets.pods = informer.GetIndexer()
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if initial {
				return
			}
			if m, ok := o.(*metav1.PartialObjectMetadata); ok && bound != nil {
				bound(m.Namespace, m.Name)
			}
			a.budgetChanged(o)
			a.podChanged(o)
		},
		UpdateFunc: func(before, o any) {
			a.budgetChanged(o)
			if m, ok := before.(*metav1.PartialObjectMetadata); ok && m.DeletionTimestamp == nil {
				a.podChanged(o)
			}
		},
		DeleteFunc: a.podGone,
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go informer.RunWithContext(ctx)
	return informer.HasSynced, nil
}

// identity keeps the fields that identify an object, its deletion time and, for budgets, its
// labels.
func (a *Actors) identity(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp,
	}}
	if a.budgets != nil && a.budgets.all[m.Namespace] != nil {
		kept.Labels = m.Labels
	}
	return kept, nil
}

func (a *Actors) podChanged(o any) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.DeletionTimestamp != nil {
		a.queue.Add(task{what: taskPod, namespace: m.Namespace, name: m.Name, uid: string(m.UID)})
	}
}

// podGone enqueues a pod that was removed.
func (a *Actors) podGone(o any) {
	a.budgetChanged(o)
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if m, ok := o.(*metav1.PartialObjectMetadata); ok && a.devs != nil {
		a.queue.Add(task{what: taskGone, namespace: m.Namespace, name: m.Name, uid: string(m.UID)})
	}
}

// endPod removes a deleted pod, as its kubelet does when the containers have stopped.
func (a *Actors) endPod(ctx context.Context, t task) error {
	pod, err := a.kube.CoreV1().Pods(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != t.uid { // gone, or another pod of that name
		return nil
	}
	if err != nil {
		return err
	}
	if err := a.vols.detach(ctx, pod); err != nil {
		return err
	}
	now := int64(0)
	err = a.kube.CoreV1().Pods(t.namespace).Delete(ctx, t.name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(t.uid)})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
