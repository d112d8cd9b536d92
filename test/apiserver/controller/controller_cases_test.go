//go:build linux && cases

package controller

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestObjectsAndCommandsDoNotShareAScheduler(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	if err := w.byHand(t, "hand"); err != nil {
		t.Fatal(err)
	}
	w.mustCreate(t, "hand", specOf("localhost/scheduler:v1", ""))
	object := w.await(t, "hand", v1alpha1.ConditionStalled, metav1.ConditionTrue, "OwnedByOther")
	if text := message(object, v1alpha1.ConditionStalled); !has(text, "was deployed by ", "revision 1") {
		t.Errorf("message: %s", text)
	}
	w.delete(t, "hand")
	if left := w.objectsOf(t, "hand"); !has(left, "Deployment") {
		t.Errorf("the scheduler of the command is gone: %s", left)
	}
	if err := w.uninstallByHand(t, "hand"); err != nil {
		t.Error(err)
	}

	w.mustCreate(t, "orphan", specOf("localhost/scheduler:v1", ", deletionPolicy: Orphan"))
	w.await(t, "orphan", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.delete(t, "orphan")
	if left := w.objectsOf(t, "orphan"); !has(left, "Deployment", "ClusterRoleBinding") {
		t.Errorf("left: %s", left)
	}
	if err := w.byHand(t, "orphan"); err != nil {
		t.Errorf("deploy the orphan: %v", err)
	}
	if err := w.uninstallByHand(t, "orphan"); err != nil {
		t.Error(err)
	}
}

// A controller that starts while the API server is down waits for it: a pod that ends is started
// again later each time.
func TestControllerWaitsForAnAPIServerThatIsDown(t *testing.T) {
	w := install(t, server)
	w.mustCreate(t, "incomplete", "spec: {image: {reference: 'localhost/s:v1'}}")
	if err := server.StopAPI(); err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	w.log = zap.New(core)
	w.start(t, w.options())
	run.Eventually(t, "the controller tries again", func(context.Context) (bool, string) {
		return logged.FilterMessageSnippet("does not answer").Len() > 0, fmt.Sprint(logged.All())
	})
	if err := server.StartAPI(run.Context(t)); err != nil {
		t.Fatal(err)
	}
	w.await(t, "incomplete", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	w.delete(t, "incomplete")
}
