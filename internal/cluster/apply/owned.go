package apply

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// listPage is how many objects of a kind are read at once.
const listPage = 250

// maxSecrets is how many Secrets eachSecret reads.
const maxSecrets = 10_000

// ownedKinds are all kinds of objects of a scheduler.
var ownedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	budgetBefore21,
}

// budgetBefore21 is only read if the API server has no newer version: one that has both warns about
// it.
var budgetBefore21 = schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}

// Owned lists all objects with the labels of the scheduler name, in the order of applying: in all
// namespaces and at cluster scope, revisions included. Without permission to list in all namespaces
// it lists the objects in ns and kube-system. It lists a Namespace only if a verification left it
// behind, and does not list the lock of a running operation.
func (c *Client) Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	return c.labeled(ctx, ownership.Labels(name), ns)
}

// ByHelm lists the objects of the scheduler name that Helm installed from a chart of pmk-sched.
// Owned lists the objects that pmk-sched deployed.
func (c *Client) ByHelm(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	found, err := c.labeled(ctx,
		map[string]string{ownership.LabelManagedBy: ownership.Helm, ownership.LabelInstance: name}, ns)
	return slices.DeleteFunc(found,
		func(o *unstructured.Unstructured) bool { return !ownership.IsInstalled(o.GetLabels()) }), err
}

// Managed lists the objects of all schedulers and extenders, or only of name if it is set, that
// pmk-sched deployed or Helm installed from a chart of pmk-sched. It continues after an error: it
// returns all errors, joined, and the objects that could be read.
func (c *Client) Managed(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	var managed []*unstructured.Unstructured
	var failed []error
	for _, manager := range []string{ownership.Manager, ownership.Helm} {
		of := map[string]string{ownership.LabelManagedBy: manager}
		if name != "" {
			of[ownership.LabelInstance] = name
		}
		for _, gvk := range ownedKinds {
			found, err := c.listOwnedKind(ctx, gvk, of, ns)
			if err != nil {
				failed = append(failed, err)
			}
			managed = append(managed, found...)
		}
	}
	managed = slices.DeleteFunc(managed,
		func(o *unstructured.Unstructured) bool { return !ownership.IsInstalled(o.GetLabels()) })
	return inOrder(managed), errors.Join(failed...)
}

func (c *Client) labeled(ctx context.Context, labels map[string]string,
	ns string) ([]*unstructured.Unstructured, error) {
	var owned []*unstructured.Unstructured
	for _, gvk := range ownedKinds {
		found, err := c.listOwnedKind(ctx, gvk, labels, ns)
		if err != nil {
			return nil, err
		}
		owned = append(owned, found...)
	}
	return inOrder(owned), nil
}

// listOwnedKind lists one of the ownedKinds.
func (c *Client) listOwnedKind(ctx context.Context, gvk schema.GroupVersionKind, labels map[string]string,
	ns string) ([]*unstructured.Unstructured, error) {
	if _, err := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), "v1"); gvk == budgetBefore21 && err == nil {
		return nil, nil
	}
	of := maps.Clone(labels)
	if gvk.Kind == "Namespace" {
		of[ownership.LabelComponent] = ownership.ComponentVerify
	}
	return c.listKind(ctx, gvk, of, ns)
}

// listKind lists one kind in all namespaces or, without permission for that, in ns and kube-system.
// A kind that the cluster does not serve has no objects.
func (c *Client) listKind(ctx context.Context, gvk schema.GroupVersionKind, labels map[string]string,
	ns string) ([]*unstructured.Unstructured, error) {
	found, err := c.list(ctx, gvk, client.MatchingLabels(labels))
	var forbidden *kubeapi.ForbiddenError
	if !errors.As(err, &forbidden) {
		return found, err
	}
	if mapping, mapErr := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); mapErr != nil ||
		mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return nil, err
	}
	for _, in := range slices.Compact([]string{ns, metav1.NamespaceSystem}) {
		more, err := c.list(ctx, gvk, client.MatchingLabels(labels), client.InNamespace(in))
		if in != ns && gvk.Kind != "RoleBinding" && errors.As(err, &forbidden) {
			continue // a scheduler of another namespace has only RoleBindings there
		}
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (c *Client) list(ctx context.Context, gvk schema.GroupVersionKind,
	opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	opts = append(opts, client.Limit(listPage))
	for token := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.api.List(ctx, list, append(slices.Clone(opts), client.Continue(token))...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(gvk)
			found = append(found, &list.Items[i])
		}
		if token = list.GetContinue(); token == "" {
			return found, nil
		}
	}
}

// eachSecret calls do with the metadata of each Secret. It returns an error for more than 10,000.
func (c *Client) eachSecret(ctx context.Context, do func(secret *metav1.PartialObjectMetadata),
	opts ...client.ListOption) error {
	opts = append(opts, client.Limit(listPage))
	seen := 0
	for token := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := c.api.List(ctx, list, append(slices.Clone(opts), client.Continue(token))...); err != nil {
			return err
		}
		if seen += len(list.Items); seen > maxSecrets {
			return problem.Errorf("delete the Secrets that pmk-sched did not write",
				"more than %d Secrets have the labels of revisions", maxSecrets)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}
