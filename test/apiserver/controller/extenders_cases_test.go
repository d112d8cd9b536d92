//go:build linux && cases

package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

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
