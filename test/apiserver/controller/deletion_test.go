//go:build linux

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// deletionTime is how long an object without a scheduler may exist after it is deleted.
const deletionTime = 10 * time.Second

// awaitGone waits until an object that was deleted is gone.
func (w *world) awaitGone(t *testing.T, name string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var err error
	run.Eventually(t, "object "+name+" is gone", func(context.Context) (bool, string) {
		found := &v1alpha1.CustomScheduler{}
		err = w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, found)
		return apierrors.IsNotFound(err) || ctx.Err() != nil, fmt.Sprint(err, found.Status)
	})
	if !apierrors.IsNotFound(err) {
		t.Errorf("object %s exists %s after it was deleted", name, limit)
	}
}

// undeployable returns specs that the schema accepts and that no cluster can deploy, with a part of
// the reason.
func undeployable() map[string]string {
	extender := func(fields string) string { return complete + ", extenders: [{name: e" + fields + "}]" }
	const policies = ", policies: [{name: gpupacking}]"
	return map[string]string{
		extender(""): "--policy is required",
		extender(policies + ", filterVerb: other"):                 "does not serve",
		extender(policies):                                         "ignorable is not set",
		extender(policies + ", image: 'A image'"):                  "image",
		extender(policies + ", sidecar: true, replicas: 2"):        "is a sidecar",
		extender(policies + ", enableHTTPS: false"):                "enableHTTPS",
		extender(policies + ", tlsConfig: {insecure: true}"):       "tlsConfig",
		extender(policies + ", port: 99"):                          "port",
		extender(", policies: [{name: gpupacking, args: {a: 1}}]"): "gpupacking",
		extender(", urlPrefix: 'http://a', sidecar: true"):         "urlPrefix",
		extender(", urlPrefix: 'http://a', tlsConfig: {ca: auto}"): "tlsConfig.ca",
		"source: {branch: v1.24.3}, image: {reference: 'A image'}": "image",
		complete + ", configuration: {preset: none}":               "preset",
		complete + ", configuration: {inline: {kind: Other}}":      "kind",
		complete + ", args: ['--leader-elect=false']":              "leader-elect",
	}
}

// An object whose scheduler was never deployed has nothing to remove: it must not depend on its
// spec, which nobody checked, whether it can be deleted.
func TestObjectsThatWereNeverDeployedAreDeletedAtOnce(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	n := 0
	for spec, reason := range undeployable() {
		n++
		name := fmt.Sprintf("undeployable-%d", n)
		w.mustCreate(t, name, "spec: {"+spec+"}")
		object := w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "")
		if text := message(object, v1alpha1.ConditionStalled); !has(text, reason) {
			t.Errorf("%s: message: %s", spec, text)
		}
		if err := w.kube.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		w.awaitGone(t, name, deletionTime)
	}
	// The schema refuses other names, and a CEL rule this one, which 1.24 does not evaluate.
	w.mustCreate(t, "default-scheduler", "spec: {"+complete+"}")
	object := w.await(t, "default-scheduler", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	if err := w.kube.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, "default-scheduler", deletionTime)
}

// A deployed scheduler is removed although its object has another spec since, which no cluster
// deploys.
func TestADeployedObjectWhoseSpecBecameInvalidIsDeleted(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	w.mustCreate(t, "changed", specOf("localhost/scheduler:v1", ", extenders: [{name: changed-extender, "+
		"image: 'localhost/extender:v1', policies: [{name: gpupacking}], ignorable: false}]"))
	w.await(t, "changed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.patch(t, "changed", `{"spec":{"extenders":[{"name":"other","filterVerb":"other"}]}}`)
	w.await(t, "changed", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	w.delete(t, "changed")
	for _, name := range []string{"changed", "changed-extender"} {
		if left := w.objectsOf(t, name); left != "" {
			t.Errorf("objects of %s are left: %s", name, left)
		}
	}
}

// A namespace that is being deleted accepts no new objects: neither a lock nor a revision.
func TestObjectsOfANamespaceThatIsDeletedAreReleased(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	w.mustCreate(t, "deployed", specOf("localhost/scheduler:v1", ", extenders: [{name: deployed-extender, "+
		"image: 'localhost/extender:v1', policies: [{name: gpupacking}], ignorable: false}]"))
	w.await(t, "deployed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.mustCreate(t, "invalid", "spec: {"+complete+", extenders: [{name: e}]}")
	w.await(t, "invalid", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	if err := w.server.Client(t).CoreV1().Namespaces().Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.DeleteAllOf(t.Context(), &v1alpha1.CustomScheduler{}, client.InNamespace(w.ns)); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, "invalid", deletionTime)
	w.awaitGone(t, "deployed", run.Patience)
	for _, name := range []string{"deployed", "deployed-extender"} {
		if left := w.objectsOf(t, name); left != "" {
			t.Errorf("objects of %s are left: %s", name, left)
		}
	}
}

func TestAnExtenderOfTwoObjectsStaysUntilBothAreDeleted(t *testing.T) {
	w := newWorld(t, server)
	w.allowExtenders(t)
	w.start(t, w.options())
	spec := specOf("localhost/scheduler:v1", ", extenders: [{name: shared-extender, image: 'localhost/extender:v1', "+
		"policies: [{name: gpupacking}], ignorable: false}]")
	for _, name := range []string{"shared-a", "shared-b"} {
		w.mustCreate(t, name, spec)
	}
	for _, name := range []string{"shared-a", "shared-b"} {
		w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	}
	w.delete(t, "shared-a")
	if left := w.objectsOf(t, "shared-a"); left != "" {
		t.Errorf("objects of shared-a are left: %s", left)
	}
	if left := w.objectsOf(t, "shared-extender"); !has(left, "Deployment", "Service") {
		t.Errorf("shared-b calls the extender, of which is left: %s", left)
	}
	w.await(t, "shared-b", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.delete(t, "shared-b")
	if left := w.objectsOf(t, "shared-extender"); left != "" {
		t.Errorf("objects of the extender are left: %s", left)
	}
}
