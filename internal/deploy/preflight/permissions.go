package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// permission is a set of verbs on one resource that a deployment needs.
type permission struct {
	on      authorizationv1.ResourceAttributes // without its verb
	verbs   []string
	warning bool // a deployment may succeed without it
	hint    string
}

func (p permission) String() string { return kubeapi.ResourceName(p.on) }

// permissions returns the permissions that deploying the objects needs, sorted and each once.
func permissions(objs []*unstructured.Unstructured, namespace string) []permission {
	var all []permission
	for _, obj := range objs {
		resource := resourceOf(obj)
		all = append(all, permission{
			on: authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource,
				Namespace: obj.GetNamespace()},
			verbs: []string{"get", "list", "create", "patch", "delete"},
		})
		if bind, ok := bindingPermission(obj); ok {
			all = append(all, bind)
		}
	}
	in := func(group, resource, subresource string, verbs ...string) permission {
		return permission{on: authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource,
			Namespace: namespace}, verbs: verbs}
	}
	logs, events := in("", "pods", "log", "get"), in("", "events", "", "list")
	logs.warning, logs.hint = true, "without it pmk-sched shows no log of the scheduler after a failed rollout"
	events.warning, events.hint = true, "without it pmk-sched shows no events after a failed rollout"
	all = append(all,
		in("", "secrets", "", "get", "list", "create", "patch", "delete"),
		in("coordination.k8s.io", "leases", "", "get", "create", "update", "delete"),
		in("", "pods", "", "list"), in("apps", "replicasets", "", "list"), logs, events,
	)
	slices.SortStableFunc(all, func(a, b permission) int {
		return cmp.Or(cmp.Compare(a.on.Namespace, b.on.Namespace), cmp.Compare(a.on.Group, b.on.Group),
			cmp.Compare(a.String(), b.String()))
	})
	return slices.CompactFunc(all,
		func(a, b permission) bool { return a.String() == b.String() && slices.Equal(a.verbs, b.verbs) })
}

// bindingPermission returns the permission to bind a binding's role. A user who has all the role's
// permissions does not need it
// (k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased/storage.go).
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
		on: authorizationv1.ResourceAttributes{Group: group, Resource: resourceOf(ref).Resource,
			Namespace: obj.GetNamespace(), Name: name},
		verbs: []string{"bind"}, warning: true, hint: "not needed by a user who has every permission of that role",
	}, true
}

func (p *preflight) permissionChecks() []Check {
	var checks []Check
	for _, needed := range permissions(p.Objects, p.Namespace) {
		checks = append(checks, Check{
			Name:        "permission",
			Description: fmt.Sprintf("can %s %s", strings.Join(needed.verbs, ", "), needed),
			Warning:     needed.warning,
			Run:         func(ctx context.Context) (string, error) { return "", p.checkPermission(ctx, needed) },
		})
	}
	return checks
}

// checkPermission fails if the kubeconfig's user lacks a permission.
func (p *preflight) checkPermission(ctx context.Context, needed permission) error {
	var denied []string
	for _, verb := range needed.verbs {
		on := needed.on
		on.Verb = verb
		allowed, err := p.may(ctx, on)
		if err != nil {
			return unknownIfForbidden(err)
		}
		if !allowed {
			denied = append(denied, verb)
		}
	}
	if len(denied) == 0 {
		return nil
	}
	hint := needed.hint
	if hint == "" {
		hint = "use a kubeconfig of a cluster administrator (--kubeconfig/--context), or get the permission granted"
	}
	return problem.Errorf(hint, "cannot %s %s", strings.Join(denied, ", "), needed)
}

// may reports whether the kubeconfig's user has a permission.
func (p *preflight) may(ctx context.Context, on authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &on}}
	answer, err := kubeapi.Create(ctx, p.retry, "ask for permission to "+on.Verb+" "+kubeapi.ResourceName(on),
		p.kube.AuthorizationV1().SelfSubjectAccessReviews().Create, review)
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
