//go:build linux && cases

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// Whoever changes an object of a scheduler as soon as it is deployed meets a controller whose cache
// does not have the status yet: it is a repair all the same, and not the first deployment.
func TestStatusIsKnownBeforeTheCacheHasIt(t *testing.T) {
	w := newWorld(t, server)
	w.address = lateWatches(t, "/customschedulers", 3*time.Second)
	w.start(t, w.options())
	w.mustCreate(t, "late", specOf("localhost/scheduler:v1", ""))
	w.await(t, "late", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	if _, err := w.server.Client(t).AppsV1().Deployments(w.ns).Patch(t.Context(), "late", types.MergePatchType,
		[]byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "late", v1alpha1.ConditionDrifted, metav1.ConditionFalse, "Repaired")
	w.delete(t, "late")
}
