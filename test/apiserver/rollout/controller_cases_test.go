//go:build linux && cases

package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// runController runs the controller with the permissions of its ServiceAccount, until stop is
// called or the test ends.
func (w *world) runController(t *testing.T) (stop func()) {
	t.Helper()
	kubeconfig := t.TempDir() + "/kubeconfig"
	user := "system:serviceaccount:" + controller.DefaultNamespace + ":" + controller.Name
	if err := w.plane.Server().WriteKubeconfig(kubeconfig, user); err != nil {
		t.Fatal(err)
	}
	s := &session.Session{Connection: kubeapi.ConnectOptions{Kubeconfig: kubeconfig}, NodeRoot: inspect.NoNode,
		CacheDir: t.TempDir(), Warn: func(string) {}, Note: func(string) {},
		OnStep: func(string) func(error) { return func(error) {} }, Log: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel))}
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- controller.Run(ctx, s, controller.Options{Namespace: controller.DefaultNamespace, MetricsAddress: "0",
			HealthAddress: "0", Interval: time.Second, Timeout: 30 * time.Second, StableFor: 200 * time.Millisecond,
			Version: "v0.0.0-test"}) // the test does what the controller does for webhooks
	}()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			if err := <-done; err != nil {
				t.Errorf("the controller: %v", err)
			}
		}
		stopped = true
	}
	t.Cleanup(stop)
	return stop
}

// A controller that restarts continues a rollout, and ends the one of a bad configuration.
func TestControllerRollsOutStepByStep(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	w.plane.Server().Play(t, controller.DefaultNamespace, func(string) apiserver.Behavior { return apiserver.Works })
	stop := w.runController(t)
	w.load(t, map[string]string{blocks: "yes"})

	w.scheduler(t, "kept", nil)
	w.create(t, "kept", "steps: [1, 20, 100], stepTime: 3s, minPods: 1")
	w.await(t, "kept", func(r v1alpha1.RolloutStatus) bool { return r.Share == 20 && r.Step == 2 && r.Verdict == "" })
	stop()
	w.runController(t)
	w.await(t, "kept", func(r v1alpha1.RolloutStatus) bool {
		return r.Share == 100 && r.Verdict == v1alpha1.RolloutPassed
	})

	w.unroute(t, "kept")
	w.scheduler(t, "spoiled", blocksLabel)
	w.create(t, "spoiled", short)
	found := w.await(t, "spoiled", func(r v1alpha1.RolloutStatus) bool { return r.Verdict == v1alpha1.RolloutViolated })
	if found.Share != 0 || w.registered(t, "spoiled") != 0 {
		t.Errorf("the share is %d %%", found.Share)
	}
}

func (w *world) objects(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	api, err := dynamic.NewForConfig(w.plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	return api.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version,
		Resource: v1alpha1.Resource}).Namespace(controller.DefaultNamespace)
}

func (w *world) create(t *testing.T, name, rollout string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	err := yaml.Unmarshal([]byte("spec: {image: {reference: 'localhost/s:v1'}, source: {branch: "+w.plane.Release.String()+
		"}, route: {namespaces: ["+space+"]}, rollout: {"+rollout+"}}"), &object.Object)
	if err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion(v1alpha1.APIVersion)
	object.SetKind(v1alpha1.Kind)
	object.SetName(name)
	if _, err := w.objects(t).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits for a state of the rollout of an object.
func (w *world) await(t *testing.T, name string, met func(v1alpha1.RolloutStatus) bool) (r v1alpha1.RolloutStatus) {
	t.Helper()
	run.Eventually(t, "the rollout of "+name, func(ctx context.Context) (bool, string) {
		object, err := w.objects(t).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		text, err := yaml.Marshal(status["rollout"])
		if err != nil {
			return false, err.Error()
		}
		r = v1alpha1.RolloutStatus{}
		err = yaml.Unmarshal(text, &r)
		return err == nil && met(r), fmt.Sprint(status, err)
	})
	return r
}
