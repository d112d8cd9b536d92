//go:build linux && cases

package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
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

// A scheduler whose extender is gone binds nothing: the object must not be ready, and the extender
// is deployed again.
func TestExtendersOfAnObjectAreRepaired(t *testing.T) {
	const extender = "kept-extender"
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	w.mustCreate(t, "keeper", withExtender(extender))
	w.await(t, "keeper", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	kube := w.server.Client(t)
	deployments, secrets := kube.AppsV1().Deployments(w.ns), kube.CoreV1().Secrets(w.ns)
	var certificate string // the Secret that the pods of the extender mount
	d, err := deployments.Get(t.Context(), extender, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			certificate = volume.Secret.SecretName
		}
	}
	for name, c := range map[string]struct {
		harm    func() error
		unready bool
	}{
		"deleted": {func() error {
			return deployments.Delete(t.Context(), extender, metav1.DeleteOptions{})
		}, true},
		"scaled to 0": {func() error {
			_, err := deployments.Patch(t.Context(), extender, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
				metav1.PatchOptions{FieldManager: "someone"})
			return err
		}, true},
		"without its certificate": {func() error {
			return secrets.Delete(t.Context(), certificate, metav1.DeleteOptions{})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			stop := w.history(t, "keeper")
			if err := c.harm(); err != nil {
				t.Fatal(err)
			}
			run.Eventually(t, "the extender is repaired", func(ctx context.Context) (bool, string) {
				d, err := deployments.Get(ctx, extender, metav1.GetOptions{})
				if err != nil || d.Spec.Replicas == nil || *d.Spec.Replicas == 0 || d.Status.AvailableReplicas == 0 {
					return false, fmt.Sprint(err)
				}
				for _, volume := range d.Spec.Template.Spec.Volumes {
					if volume.Secret != nil {
						if _, err := secrets.Get(ctx, volume.Secret.SecretName, metav1.GetOptions{}); err != nil {
							return false, err.Error()
						}
						certificate = volume.Secret.SecretName
					}
				}
				return true, ""
			})
			w.await(t, "keeper", v1alpha1.ConditionDrifted, metav1.ConditionFalse, "Repaired")
			w.await(t, "keeper", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
			if seen := strings.Join(stop(), "\n"); c.unready && !has(seen, "False NotAvailable no replica of extender") {
				t.Errorf("Ready was not False meanwhile:\n%s", seen)
			}
		})
	}
	w.delete(t, "keeper")
}

// Two controllers that change the same field do not lead to a deployment every few seconds.
func TestAnObjectThatIsRepairedAgainAndAgainStalls(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	w.mustCreate(t, "contested", specOf("localhost/scheduler:v1", ""))
	w.await(t, "contested", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	deployments := w.server.Client(t).AppsV1().Deployments(w.ns)
	run.Eventually(t, "the controller stops", func(ctx context.Context) (bool, string) {
		_, err := deployments.Patch(ctx, "contested", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`),
			metav1.PatchOptions{FieldManager: "other-controller"})
		object := w.get(t, "contested")
		c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionStalled)
		return err == nil && c != nil && c.Status == metav1.ConditionTrue && c.Reason == "RepairedTooOften" &&
			has(c.Message, "spec.replicas", "the next repair is at", "managedFields"), fmt.Sprint(err, c)
	})
	w.await(t, "contested", v1alpha1.ConditionDrifted, metav1.ConditionTrue, "Changed")
	w.delete(t, "contested")
}
