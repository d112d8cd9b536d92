//go:build linux

package controller

import (
	"context"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/controller"
)

// allowExtenders grants the controller what it grants to extenders.
func (w *world) allowExtenders(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-extenders"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: controller.Name}}}
	for _, object := range []client.Object{role, binding} {
		if err := w.kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// history collects the states of the condition Ready of an object until stop is called.
func (w *world) history(t *testing.T, name string) (stop func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watching, err := client.NewWithWatch(w.server.Config(), client.Options{Scheme: w.kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(ctx, &v1alpha1.CustomSchedulerList{}, client.InNamespace(w.ns))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	var done sync.WaitGroup
	done.Go(func() {
		for event := range events.ResultChan() {
			object, ok := event.Object.(*v1alpha1.CustomScheduler)
			if !ok || object.Name != name {
				continue
			}
			if c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				seen = append(seen, string(c.Status)+" "+c.Reason+" "+c.Message)
			}
		}
	})
	return func() []string { cancel(); done.Wait(); return seen }
}
