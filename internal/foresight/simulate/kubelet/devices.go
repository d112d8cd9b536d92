package kubelet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// devices releases the ResourceClaims for pods that are gone, as the garbage collector and the
// claim controller do (pkg/controller/resourceclaim, syncClaim), and reports as drivers do that
// allocated devices are ready to be bound.
type devices struct {
	client dynamic.NamespaceableResourceInterface
	claims cache.Indexer
}

// byPod is the index of the claims that a pod owns or that are reserved for it, by the pod's UID.
const byPod = "pod"

// watchDevices enqueues the claims whose devices are not ready.
func (a *Actors) watchDevices(ctx context.Context, client dynamic.Interface,
	resource schema.GroupVersionResource) (cache.InformerSynced, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0,
		cache.Indexers{byPod: podsOf}, nil).Informer()
	a.devs = &devices{client: client.Resource(resource), claims: informer.GetIndexer()}
	changed := func(o any) {
		if claim, ok := o.(*unstructured.Unstructured); ok && len(unready(claim)) > 0 {
			a.queue.Add(task{what: taskDevice, namespace: claim.GetNamespace(), name: claim.GetName()})
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed,
		UpdateFunc: func(_, o any) { changed(o) }})
	if err != nil {
		return nil, fmt.Errorf("watch ResourceClaims: %w", err)
	}
	go informer.RunWithContext(ctx)
	return informer.HasSynced, nil
}

// podsOf returns the UIDs of the pods that own a claim or that it is reserved for.
func podsOf(o any) ([]string, error) {
	claim, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	var uids []string
	for _, owner := range claim.GetOwnerReferences() {
		uids = append(uids, string(owner.UID))
	}
	for _, consumer := range reservations(claim) {
		uids = append(uids, uidOf(consumer))
	}
	return uids, nil
}

func reservations(claim *unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedSlice(claim.Object, "status", "reservedFor")
	return all
}

func uidOf(reference any) string {
	o, _ := reference.(map[string]any)
	uid, _ := o["uid"].(string)
	return uid
}

// release releases the claims for a pod that is gone.
func (d *devices) release(ctx context.Context, pod string) error {
	found, err := d.claims.ByIndex(byPod, pod)
	if err != nil {
		return err
	}
	for _, o := range found {
		claim, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if err := d.releaseOne(ctx, claim.GetNamespace(), claim.GetName(), pod); err != nil {
			return err
		}
	}
	return nil
}

func (d *devices) releaseOne(ctx context.Context, namespace, name, pod string) error {
	claims := d.client.Namespace(namespace)
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	owned := slices.ContainsFunc(claim.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return string(owner.UID) == pod })
	given := reservations(claim)
	left := slices.DeleteFunc(slices.Clone(given), func(reference any) bool { return uidOf(reference) == pod })
	switch {
	case owned:
	case len(left) == len(given):
		return nil
	case len(left) > 0:
		if err := unstructured.SetNestedSlice(claim.Object, left, "status", "reservedFor"); err != nil {
			return err
		}
		_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	}
	claim.Object["status"] = map[string]any{}
	if claim, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if len(claim.GetFinalizers()) > 0 { // of the scheduler
		_, err = claims.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
	}
	if err == nil && owned {
		err = claims.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// unready returns the allocated devices in a claim that have binding conditions and no status.
func unready(claim *unstructured.Unstructured) []map[string]any {
	results, _, _ := unstructured.NestedSlice(claim.Object, "status", "allocation", "devices", "results")
	statuses, _, _ := unstructured.NestedSlice(claim.Object, "status", "devices")
	var all []map[string]any
	for _, r := range results {
		result, _ := r.(map[string]any)
		conditions, _ := result["bindingConditions"].([]any)
		has := slices.ContainsFunc(statuses, func(s any) bool {
			status, _ := s.(map[string]any)
			return status["driver"] == result["driver"] && status["pool"] == result["pool"] &&
				status["device"] == result["device"] && status["shareID"] == result["shareID"]
		})
		if len(conditions) > 0 && !has {
			all = append(all, result)
		}
	}
	return all
}

// prepare reports that a claim's devices are ready to be bound.
func (d *devices) prepare(ctx context.Context, namespace, name string) error {
	claims := d.client.Namespace(namespace)
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	waiting := unready(claim)
	if len(waiting) == 0 {
		return nil
	}
	statuses, _, _ := unstructured.NestedSlice(claim.Object, "status", "devices")
	for _, result := range waiting {
		status := map[string]any{}
		for _, field := range []string{"driver", "pool", "device", "shareID"} {
			if result[field] != nil {
				status[field] = result[field]
			}
		}
		var conditions []any
		names, _ := result["bindingConditions"].([]any)
		for _, condition := range names {
			conditions = append(conditions, map[string]any{"type": condition, "status": "True", "reason": "Simulated",
				"message": "", "lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")})
		}
		status["conditions"] = conditions
		statuses = append(statuses, status)
	}
	if err := unstructured.SetNestedSlice(claim.Object, statuses, "status", "devices"); err != nil {
		return err
	}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
