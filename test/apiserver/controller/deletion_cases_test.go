//go:build linux && cases

package controller

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// A deployed scheduler is removed although its object has another spec since, which no cluster
// deploys.
func TestADeployedObjectWhoseSpecBecameInvalidIsDeleted(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	w.mustCreate(t, "changed", withExtender("changed-extender"))
	w.await(t, "changed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.patch(t, "changed", `{"spec":{"extenders":[{"name":"other","filterVerb":"other"}]}}`)
	w.await(t, "changed", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	w.delete(t, "changed")
	w.nothingLeft(t, "changed", "changed-extender")
}

// A namespace that is being deleted accepts no new objects: neither a lock nor a revision.
func TestObjectsOfANamespaceThatIsDeletedAreReleased(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	w.mustCreate(t, "deployed", withExtender("deployed-extender"))
	w.await(t, "deployed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.stalled(t, "invalid", complete+", extenders: [{name: e}]")
	if err := w.server.Client(t).CoreV1().Namespaces().Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.DeleteAllOf(t.Context(), &v1alpha1.CustomScheduler{}, client.InNamespace(w.ns)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"invalid", "deployed"} {
		w.awaitGone(t, name)
	}
	w.nothingLeft(t, "deployed", "deployed-extender")
}

func TestAnExtenderOfTwoObjectsStaysUntilBothAreDeleted(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	for _, name := range []string{"shared-a", "shared-b"} {
		w.mustCreate(t, name, withExtender("shared-extender"))
	}
	for _, name := range []string{"shared-a", "shared-b"} {
		w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	}
	w.delete(t, "shared-a")
	w.nothingLeft(t, "shared-a")
	if left := w.objectsOf(t, "shared-extender"); !has(left, "Deployment", "Service") {
		t.Errorf("shared-b calls the extender, of which is left: %s", left)
	}
	w.await(t, "shared-b", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.delete(t, "shared-b")
	w.nothingLeft(t, "shared-b", "shared-extender")
}

// A removal that its timeout ends is continued. Revisions are removed last.
func TestARemovalThatWasInterruptedContinues(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	for name, removed := range map[string][]string{
		"an extender without objects":                 {"interrupted-extender"},
		"a scheduler and an extender without objects": {"interrupted", "interrupted-extender"},
	} {
		t.Run(name, func(t *testing.T) {
			stop := w.start(t, w.options())
			w.mustCreate(t, "interrupted", withExtender("interrupted-extender"))
			w.await(t, "interrupted", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
			stop()
			for _, name := range removed {
				w.removeAllButRevisions(t, name)
			}
			w.start(t, w.options())
			w.delete(t, "interrupted")
			w.nothingLeft(t, "interrupted", "interrupted-extender")
		})
	}
}

// withExtender is the spec of an object with an extender that is deployed for it.
func withExtender(extender string) string {
	return specOf("localhost/scheduler:v1", ", extenders: [{name: "+extender+
		", image: 'localhost/extender:v1', policies: [{name: gpupacking}], ignorable: false}]")
}

// removeAllButRevisions removes objects as far as a removal that is interrupted does.
func (w *world) removeAllButRevisions(t *testing.T, name string) {
	t.Helper()
	c, owned := w.owned(t, name)
	owned = slices.DeleteFunc(owned, func(o *unstructured.Unstructured) bool {
		return metav1.HasLabel(metav1.ObjectMeta{Labels: o.GetLabels()}, ownership.LabelRevision)
	})
	if _, err := c.Delete(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
}

// nothingLeft requires that schedulers or extenders have no objects.
func (w *world) nothingLeft(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if left := w.objectsOf(t, name); left != "" {
			t.Errorf("objects of %s are left: %s", name, left)
		}
	}
}
