package apply

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/ownership"
)

// listPage bounds how many objects of a kind are held at once by one answer.
const listPage = 250

// ownedKinds are all kinds that are ever made for a scheduler.
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
	budgetBefore21,
}

// budgetBefore21 is asked for only where there is no other: an API server that has both warns of it.
var budgetBefore21 = schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}

// Owned lists everything that is labelled as belonging to the scheduler name, its revisions included, in the order of applying: in all
// namespaces and at cluster scope. Who may not list in all namespaces gets what is in ns and kube-system.
// Namespaces are listed only when a verification left them behind. The lock of a running operation is not listed.
func (c *Client) Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	var owned []*unstructured.Unstructured
	for _, gvk := range ownedKinds {
		if _, err := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), "v1"); gvk == budgetBefore21 && err == nil {
			continue
		}
		labels := ownership.Labels(name)
		if gvk.Kind == "Namespace" {
			labels[ownership.LabelComponent] = ownership.ComponentVerify
		}
		found, err := c.listKind(ctx, gvk, labels, ns)
		if err != nil {
			return nil, err
		}
		owned = append(owned, found...)
	}
	return inOrder(owned), nil
}

// listKind lists one kind in all namespaces, or in those we surely use where that is forbidden. A kind the cluster does not serve has no objects.
func (c *Client) listKind(ctx context.Context, gvk schema.GroupVersionKind, labels map[string]string, ns string) ([]*unstructured.Unstructured, error) {
	found, err := c.list(ctx, gvk, client.MatchingLabels(labels))
	var forbidden *kubeapi.ForbiddenError
	if !errors.As(err, &forbidden) {
		return found, err
	}
	if mapping, mapErr := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); mapErr != nil || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return nil, err
	}
	for _, in := range slices.Compact([]string{ns, metav1.NamespaceSystem}) {
		more, err := c.list(ctx, gvk, client.MatchingLabels(labels), client.InNamespace(in))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (c *Client) list(ctx context.Context, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
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
