//go:build linux && cases

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/controller"
)

// A scheduler that was deployed without bounds is verified when the controller gets some.
func TestNewBoundsHoldForDeployedSchedulers(t *testing.T) {
	w := newWorld(t, server)
	stop := w.start(t, w.options())
	w.mustCreate(t, "before", specOf("localhost/scheduler:v1", ""))
	w.await(t, "before", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	stop()
	w.bounds = session.Bounds{Repositories: []string{"registry.example.com"}}
	stop = w.start(t, w.options())
	w.await(t, "before", v1alpha1.ConditionStalled, metav1.ConditionTrue, "ImageRefused")
	w.await(t, "before", v1alpha1.ConditionReady, metav1.ConditionFalse, "ImageRefused")
	stop()
	w.bounds = session.Bounds{Repositories: []string{"localhost"}}
	w.start(t, w.options())
	w.await(t, "before", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.delete(t, "before")
}

// GKE Autopilot refuses the Role and the RoleBinding of the controller in kube-system.
func TestControllerWorksWithoutPermissionsInKubeSystem(t *testing.T) {
	w := newWorld(t, server)
	kube := server.Client(t)
	err := kube.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(t.Context(), controller.Name,
		metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.start(t, w.options())
	w.mustCreate(t, "closed", specOf("localhost/scheduler:v1", ", rbac: {authenticationReader: false}"))
	w.await(t, "closed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.delete(t, "closed")
	if left := w.objectsOf(t, "closed"); left != "" {
		t.Errorf("left: %s", left)
	}
}
