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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// listPage is the page size for object lists, and dataPage for Secrets or ConfigMaps with their
	// data, which has up to 1 MiB each.
	listPage, dataPage = 250, 25
	// maxItems limits the objects that are read per kind, and maxListed their data in bytes.
	maxItems, maxListed = 10_000, 64 << 20
)

// ownedKinds are all object kinds that a scheduler has.
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
	{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}, // before 1.21
	{Group: admissionGroup, Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: admissionGroup, Version: "v1", Kind: "MutatingAdmissionPolicy"},
	{Group: admissionGroup, Version: "v1", Kind: "MutatingAdmissionPolicyBinding"},
	{Group: admissionGroup, Version: "v1beta1", Kind: "MutatingAdmissionPolicy"}, // before 1.36
	{Group: admissionGroup, Version: "v1beta1", Kind: "MutatingAdmissionPolicyBinding"},
}

// Owned lists all objects with the labels for the scheduler name, in apply order: in all namespaces
// and at cluster scope, revisions included. Without permission to list in all namespaces it lists
// the objects in ns and kube-system. It lists a Namespace only if a verification left it behind,
// and does not list a running operation's lock. Revisions have only their metadata.
func (c *Client) Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	return c.labeled(ctx, ownership.Labels(name), ns)
}

// ByHelm lists the objects for the scheduler name that Helm installed from a pmk-sched chart. Owned
// lists the objects that pmk-sched deployed.
func (c *Client) ByHelm(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	found, err := c.labeled(ctx,
		map[string]string{ownership.LabelManagedBy: ownership.Helm, ownership.LabelInstance: name}, ns)
	return slices.DeleteFunc(found,
		func(o *unstructured.Unstructured) bool { return !ownership.IsInstalled(o.GetLabels()) }), err
}

// Managed lists the objects of all schedulers and extenders, or only of name if it is set, that
// pmk-sched deployed or Helm installed from a pmk-sched chart. It continues after an error: it
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

func (c *Client) labeled(ctx context.Context, of map[string]string,
	ns string) ([]*unstructured.Unstructured, error) {
	var owned []*unstructured.Unstructured
	for _, gvk := range ownedKinds {
		found, err := c.listOwnedKind(ctx, gvk, of, ns)
		if err != nil {
			return nil, err
		}
		owned = append(owned, found...)
	}
	return inOrder(owned), nil
}

// listOwnedKind lists one of the ownedKinds. It does not list an older version of a kind if the API
// server has the newer one: it would warn.
func (c *Client) listOwnedKind(ctx context.Context, gvk schema.GroupVersionKind, of map[string]string,
	ns string) ([]*unstructured.Unstructured, error) {
	if gvk.Version == "v1beta1" {
		if _, err := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), "v1"); err == nil {
			return nil, nil
		}
	}
	of = maps.Clone(of)
	switch gvk.Kind {
	case "Namespace":
		of[ownership.LabelComponent] = ownership.ComponentVerify
	case "Secret":
		others, err := c.listKind(ctx, gvk, withRevision(of, selection.DoesNotExist), ns, fullObjects)
		if err != nil {
			return nil, err
		}
		revisions, err := c.listKind(ctx, gvk, withRevision(of, selection.Exists), ns, metadataOnly)
		return append(others, revisions...), err
	}
	return c.listKind(ctx, gvk, client.MatchingLabels(of), ns, fullObjects)
}

// withRevision selects objects with these labels that are, or are not, revisions.
func withRevision(of map[string]string, are selection.Operator) client.ListOption {
	selector := labels.SelectorFromSet(of)
	if revision, err := labels.NewRequirement(ownership.LabelRevision, are, nil); err == nil {
		selector = selector.Add(*revision)
	}
	return client.MatchingLabelsSelector{Selector: selector}
}

// listKind lists one kind in all namespaces or, without permission for that, in ns and kube-system.
// A kind that the cluster does not serve has no objects.
func (c *Client) listKind(ctx context.Context, gvk schema.GroupVersionKind, of client.ListOption, ns string,
	content listContent) ([]*unstructured.Unstructured, error) {
	found, err := c.list(ctx, gvk, content, of)
	var forbidden *kubeapi.ForbiddenError
	if !errors.As(err, &forbidden) {
		return found, err
	}
	if gvk.Group == admissionGroup {
		return nil, nil // who may not list registrations has registered none
	}
	if mapping, mapErr := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); mapErr != nil ||
		mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return nil, err
	}
	for _, in := range slices.Compact([]string{ns, metav1.NamespaceSystem}) {
		more, err := c.list(ctx, gvk, content, of, client.InNamespace(in))
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

// listContent selects what a list contains for each object.
type listContent bool

const (
	fullObjects  listContent = true
	metadataOnly listContent = false
)

// list lists objects of one kind. It returns an error if they hold more than maxListed bytes in
// data and annotations: users who may write Secrets or ConfigMaps in a namespace can add any
// number.
func (c *Client) list(ctx context.Context, gvk schema.GroupVersionKind, content listContent,
	opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	size := 0
	err := c.each(ctx, gvk, content, func(item runtime.Object) error {
		o, err := asUnstructured(item, gvk)
		if err != nil {
			return err
		}
		if size += sizeOf(o); size > maxListed {
			return tooLarge(gvk.Kind)
		}
		found = append(found, o)
		return nil
	}, opts...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// each calls do with each object of a kind: an Unstructured, or a PartialObjectMetadata. It reads
// them in pages, and returns an error for more than maxItems objects.
func (c *Client) each(ctx context.Context, gvk schema.GroupVersionKind, content listContent,
	do func(item runtime.Object) error, opts ...client.ListOption) error {
	kind, limit := gvk.GroupVersion().WithKind(gvk.Kind+"List"), int64(listPage)
	if content == fullObjects && hasData(gvk.Kind) {
		limit = dataPage
	}
	seen := 0
	for token := ""; ; {
		var page client.ObjectList = &unstructured.UnstructuredList{}
		if content == metadataOnly {
			page = &metav1.PartialObjectMetadataList{}
		}
		page.GetObjectKind().SetGroupVersionKind(kind)
		err := c.api.List(ctx, page, append(slices.Clone(opts), client.Limit(limit), client.Continue(token))...)
		if err != nil {
			return err
		}
		if seen += meta.LenList(page); seen > maxItems {
			return tooLarge(gvk.Kind)
		}
		if err := meta.EachListItem(page, do); err != nil {
			return err
		}
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// eachSecret calls do with each Secret's metadata.
func (c *Client) eachSecret(ctx context.Context, do func(secret *metav1.PartialObjectMetadata),
	opts ...client.ListOption) error {
	return c.each(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), metadataOnly, func(item runtime.Object) error {
		do(item.(*metav1.PartialObjectMetadata))
		return nil
	}, opts...)
}

func tooLarge(kind string) error {
	return problem.Errorf("delete the objects that pmk-sched did not write",
		"the objects of kind %s with the labels of pmk-sched are too large to list: more than %d MiB, or more than %d objects",
		kind, maxListed>>20, maxItems)
}

// asUnstructured returns an item from a list, whose API server may leave its kind out.
func asUnstructured(item runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	o, ok := item.(*unstructured.Unstructured)
	if !ok {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, err
		}
		o = &unstructured.Unstructured{Object: content}
	}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

func hasData(kind string) bool { return kind == "Secret" || kind == "ConfigMap" }

// sizeOf returns the size in bytes of an object's annotations, and of the data in a Secret or
// ConfigMap.
func sizeOf(o *unstructured.Unstructured) (size int) {
	for _, value := range o.GetAnnotations() {
		size += len(value)
	}
	if !hasData(o.GetKind()) {
		return size
	}
	for _, field := range []string{"data", "binaryData"} {
		data, _ := o.Object[field].(map[string]any)
		for _, value := range data {
			text, _ := value.(string)
			size += len(text)
		}
	}
	return size
}
