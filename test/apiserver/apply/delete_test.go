//go:build linux

package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func TestOwnedThenDeleteLeavesNothingOfOursAndAllOfOthers(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	other := server.Namespace(t)
	save(ctx, t, client, "gone", ns, "a", apply.Deployed)
	for name, in := range map[string]string{"gone": ns, "stays": other} {
		if _, err := client.Apply(ctx, objects(t, name, in, "a")); err != nil {
			t.Fatal(err)
		}
	}
	leftover := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leftover-of-verify",
		Labels: ownership.Labels("gone")}}
	leftover.Labels[ownership.LabelComponent] = ownership.ComponentVerify
	if _, err := server.Client(t).CoreV1().Namespaces().Create(ctx, leftover, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	owned, err := client.Owned(ctx, "gone", ns)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, obj := range owned {
		names = append(names, obj.GetKind()+"/"+obj.GetNamespace()+"/"+obj.GetName())
	}
	want := strings.Fields(strings.ReplaceAll(`Namespace//leftover-of-verify ClusterRoleBinding//gone-as-kube-scheduler ServiceAccount/NS/gone Role/NS/gone-lease
		RoleBinding/NS/gone-lease ConfigMap/NS/gone-config-a Secret/NS/gone-credentials-a Secret/NS/pmk-sched-gone-revision-1 Deployment/NS/gone`, "NS", ns))
	if diff := cmp.Diff(sorted(want), sorted(names)); diff != "" {
		t.Fatalf("owned (-want +got):\n%s", diff)
	}

	// no controller ends a namespace here
	owned = slices.DeleteFunc(owned, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
	server.CollectGarbage(t, ns)
	changes, err := client.Delete(ctx, owned)
	if err != nil {
		t.Fatal(err)
	}
	if first := "Deployment/" + ns + "/gone deleted\n"; !strings.HasPrefix(changes.String(), first) ||
		strings.Count(changes.String(), " deleted\n") != len(owned) {
		t.Errorf("not all deleted, the Deployment first:\n%s", changes)
	}
	again, err := client.Delete(ctx, owned)
	if err != nil || again.Changed() || strings.Count(again.String(), " absent\n") != len(owned) {
		t.Errorf("second time: %v\n%s", err, again)
	}
	if rest, err := client.Owned(ctx, "stays", other); err != nil || len(rest) != 7 {
		t.Errorf("of the other scheduler %d objects are left, want 7 (%v)", len(rest), err)
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func TestOwnedByWhoMaySeeOnlyOneNamespace(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	if _, err := client.Apply(ctx, objects(t, "narrow", ns, "a")); err != nil {
		t.Fatal(err)
	}
	kube := server.Client(t).RbacV1()
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	cluster := []rbacv1.PolicyRule{{APIGroups: []string{"", rbacv1.GroupName},
		Resources: []string{"namespaces", "clusterroles", "clusterrolebindings"}, Verbs: []string{"list"}}}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "narrow"}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "narrow-all"}
	for name, rules := range map[string][]rbacv1.PolicyRule{"narrow-all": all, "narrow-cluster": cluster} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if _, err := kube.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range []string{ns, "kube-system"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Subjects: subjects, RoleRef: ref}
		if _, err := kube.RoleBindings(in).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ref.Name = "narrow-cluster"
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Subjects: subjects, RoleRef: ref}
	if _, err := kube.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitAccess(ctx, "narrow",
		authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Resource: "deployments", Namespace: ns},
		authorizationv1.ResourceAttributes{Verb: "list", Group: rbacv1.GroupName, Resource: "roles",
			Namespace: "kube-system"},
		authorizationv1.ResourceAttributes{Verb: "list", Group: rbacv1.GroupName, Resource: "clusterroles"},
	); err != nil {
		t.Fatal(err)
	}
	owned, err := newClient(t, server.ConfigFor("narrow")).Owned(ctx, "narrow", ns)
	if err != nil || len(owned) != 7 {
		t.Errorf("%d objects, want 7: %v", len(owned), err)
	}
}
