package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// permission is something that deploying needs: verbs on one resource.
type permission struct {
	group, resource, subresource string
	namespace                    string
	name                         string // empty: any
	verbs                        []string
	warning                      bool // deploying may succeed without it
	hint                         string
}

func (p permission) String() string {
	text := p.resource
	if p.group != "" {
		text += "." + p.group
	}
	if p.subresource != "" {
		text += "/" + p.subresource
	}
	if p.name != "" {
		text += " " + p.name
	}
	if p.namespace == "" {
		return text
	}
	return text + " in namespace " + p.namespace
}

// permissions derives from the objects what whoever deploys them must be allowed, sorted and each once.
func permissions(objs []*unstructured.Unstructured, namespace string) []permission {
	var all []permission
	for _, obj := range objs {
		resource := resourceOf(obj)
		all = append(all, permission{
			group: resource.Group, resource: resource.Resource, namespace: obj.GetNamespace(),
			verbs: []string{"get", "list", "create", "patch", "delete"},
		})
		if bind, ok := bindingPermission(obj); ok {
			all = append(all, bind)
		}
	}
	all = append(all,
		permission{resource: "secrets", namespace: namespace, verbs: []string{"get", "list", "create", "patch", "delete"}},
		permission{group: "coordination.k8s.io", resource: "leases", namespace: namespace, verbs: []string{"get", "create", "update", "delete"}},
		permission{resource: "pods", namespace: namespace, verbs: []string{"list"}},
		permission{group: "apps", resource: "replicasets", namespace: namespace, verbs: []string{"list"}},
		permission{resource: "pods", subresource: "log", namespace: namespace, verbs: []string{"get"}, warning: true, hint: "without it a failed rollout is shown without the scheduler's log"},
		permission{resource: "events", namespace: namespace, verbs: []string{"list"}, warning: true, hint: "without it a failed rollout is shown without events"},
	)
	slices.SortStableFunc(all, func(a, b permission) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.group, b.group), cmp.Compare(a.String(), b.String()))
	})
	return slices.CompactFunc(all, func(a, b permission) bool { return a.String() == b.String() && slices.Equal(a.verbs, b.verbs) })
}

// bindingPermission is what making a binding needs beyond writing it: the right to bind that role. Who has all that the role
// grants may do without (k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased/storage.go).
func bindingPermission(obj *unstructured.Unstructured) (permission, bool) {
	group, _, _ := unstructured.NestedString(obj.Object, "roleRef", "apiGroup")
	kind, _, _ := unstructured.NestedString(obj.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(obj.Object, "roleRef", "name")
	if kind == "" {
		return permission{}, false
	}
	ref := &unstructured.Unstructured{}
	ref.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	return permission{
		group: group, resource: resourceOf(ref).Resource, namespace: obj.GetNamespace(), name: name, verbs: []string{"bind"},
		warning: true, hint: "binding it works all the same for who has every permission of that role",
	}, true
}

func (p *preflight) permissionChecks() []Check {
	var checks []Check
	for _, needed := range permissions(p.Objects, p.Namespace) {
		checks = append(checks, Check{
			Name:        "permission",
			Description: fmt.Sprintf("may %s %s", strings.Join(needed.verbs, ", "), needed),
			Warning:     needed.warning,
			Run:         func(ctx context.Context) (string, error) { return "", p.mayDo(ctx, needed) },
		})
	}
	return checks
}

// mayDo asks the API server whether the user of the kubeconfig has a permission.
func (p *preflight) mayDo(ctx context.Context, needed permission) error {
	var denied []string
	for _, verb := range needed.verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: needed.namespace, Verb: verb, Group: needed.group, Resource: needed.resource, Subresource: needed.subresource, Name: needed.name,
			},
		}}
		err := p.retry.Do(ctx, "ask for permission to "+verb+" "+needed.String(), func(ctx context.Context) (err error) {
			review, err = p.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return unknownIfForbidden(err)
		}
		if !review.Status.Allowed {
			denied = append(denied, verb)
		}
	}
	if len(denied) == 0 {
		return nil
	}
	hint := needed.hint
	if hint == "" {
		hint = "use a kubeconfig of a cluster administrator (--kubeconfig/--context), or have the permission granted"
	}
	return &problem{fmt.Sprintf("may not %s %s", strings.Join(denied, ", "), needed), hint}
}
