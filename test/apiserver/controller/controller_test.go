//go:build linux

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// specOf returns the spec of an object with an image.
func specOf(image, more string) string {
	return "spec: {source: {branch: v1.24.3}, image: {reference: '" + image + "'}" + more + "}"
}

// byHand deploys a scheduler with all permissions, as a command does.
func (w *world) byHand(t *testing.T, name string) error {
	t.Helper()
	sp, err := spec.Read(spec.Flags{Name: name, Namespace: w.ns, Image: "localhost/scheduler:hand", Branch: "v1.24.3"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = lifecycle.Deploy(t.Context(), w.session(t, ""), sp,
		deploy.RunOptions{Timeout: 20 * time.Second, StableFor: 100 * time.Millisecond})
	return err
}

func (w *world) uninstallByHand(t *testing.T, name string) error {
	t.Helper()
	sp, err := spec.Read(spec.Flags{Name: name, Namespace: w.ns})
	if err != nil {
		t.Fatal(err)
	}
	_, err = lifecycle.Uninstall(t.Context(), w.session(t, ""), sp, time.Minute)
	return err
}

// owned returns the objects of a scheduler, and the client that listed them.
func (w *world) owned(t *testing.T, name string) (*apply.Client, []*unstructured.Unstructured) {
	t.Helper()
	c, err := apply.New(w.server.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	owned, err := c.Owned(t.Context(), name, w.ns)
	if err != nil {
		t.Fatal(err)
	}
	return c, owned
}

// objectsOf returns the kinds of the objects of a scheduler.
func (w *world) objectsOf(t *testing.T, name string) string {
	t.Helper()
	_, owned := w.owned(t, name)
	var kinds []string
	for _, o := range owned {
		kinds = append(kinds, o.GetKind())
	}
	return strings.Join(kinds, " ")
}

func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	object := w.get(t, name)
	if err := w.kube.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, name)
}

func (w *world) awaitGone(t *testing.T, name string) {
	t.Helper()
	run.Eventually(t, "object "+name+" is gone", func(ctx context.Context) (bool, string) {
		found := &v1alpha1.CustomScheduler{}
		err := w.kube.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, found)
		return apierrors.IsNotFound(err), fmt.Sprint(err, found.Status)
	})
}

func (w *world) patch(t *testing.T, name, patch string) {
	t.Helper()
	object := w.get(t, name)
	if err := w.kube.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func TestControllerKeepsAnObjectDeployedWithTheLeastPermissions(t *testing.T) {
	server.Clear(t)
	w := installIn(t, server, controller.DefaultNamespace)
	w.play(t)
	w.start(t, w.options())
	w.mustCreate(t, "first", specOf("localhost/scheduler:v1", ""))
	object := w.await(t, "first", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	status := object.Status
	if status.ObservedGeneration != object.Generation || status.Revision != 1 || status.Release == nil ||
		status.Release.Scheduler != "v1.24.3" || !strings.HasPrefix(status.Release.Server, "v1.24.3") ||
		status.LastVerified == nil || status.LastVerified.Node != "node-1" {
		t.Errorf("status is %+v, release %+v", status, status.Release)
	}
	for condition, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReconciling: "False", v1alpha1.ConditionStalled: "False", v1alpha1.ConditionVerified: "True",
		v1alpha1.ConditionReleaseMatched: "True", v1alpha1.ConditionUpgradeAvailable: "False",
		v1alpha1.ConditionCredentialsValid: "True", v1alpha1.ConditionDrifted: "False",
	} {
		w.await(t, "first", condition, want, "")
	}

	t.Run("drift is repaired", func(t *testing.T) { w.repairs(t, "first") })
	t.Run("a command does not change it", func(t *testing.T) {
		for what, err := range map[string]error{
			"deploy": w.byHand(t, "first"), "uninstall": w.uninstallByHand(t, "first"),
		} {
			if !errors.As(err, new(*deploy.OwnerError)) || !has(err.Error(), "CustomScheduler/"+w.ns+"/first") {
				t.Errorf("%s: got %v", what, err)
			}
		}
	})
	t.Run("a broken image is rolled back", func(t *testing.T) {
		w.patch(t, "first", `{"spec":{"image":{"reference":"`+brokenImage+`"}}}`)
		object := w.await(t, "first", v1alpha1.ConditionStalled, metav1.ConditionTrue, "DeployFailed")
		if object.Status.Release.Image != "localhost/scheduler:v1" || object.Status.Revision != 1 {
			t.Errorf("release is %+v", object.Status.Release)
		}
		w.patch(t, "first", `{"spec":{"image":{"reference":"localhost/scheduler:v2"}}}`)
		w.await(t, "first", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	})
	w.delete(t, "first")
	if left := w.objectsOf(t, "first"); left != "" {
		t.Errorf("left: %s", left)
	}
	w.checkPermissions(t)
}

// repairs changes objects of a scheduler, and waits until they are as before.
func (w *world) repairs(t *testing.T, name string) {
	kube := w.server.Client(t)
	if _, err := kube.AppsV1().Deployments(w.ns).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the replicas are as before", func(ctx context.Context) (bool, string) {
		d, err := kube.AppsV1().Deployments(w.ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && *d.Spec.Replicas == 1, fmt.Sprint(err)
	})
	binding := name + "-as-kube-scheduler"
	if err := kube.RbacV1().ClusterRoleBindings().Delete(t.Context(), binding, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the binding exists again", func(ctx context.Context) (bool, string) {
		_, err := kube.RbacV1().ClusterRoleBindings().Get(ctx, binding, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	w.await(t, name, v1alpha1.ConditionDrifted, metav1.ConditionFalse, "")
	w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
}

// items are the releases of an index.
func items(minor, release, image string) string {
	return fmt.Sprintf("{minor: '%s', release: %s, image: '%s', configuration: {apiVersion: %s, kind: %s}}", minor, release,
		image, "kubescheduler.config.k8s.io/v1beta3", "KubeSchedulerConfiguration")
}

func TestReleaseFollowsTheIndexAndThePolicy(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	old := items("1.23", "v1.23.9", "localhost/scheduler:v1.23.9")
	w.mustCreate(t, "indexed", "spec: {releases: {items: ["+old+"]}}")
	object := w.await(t, "indexed", v1alpha1.ConditionReleaseMatched, metav1.ConditionFalse, "NoImageForRelease")
	if text := message(object, v1alpha1.ConditionReleaseMatched); !has(text, "no scheduler for Kubernetes 1.24") {
		t.Errorf("message: %s", text)
	}
	w.await(t, "indexed", v1alpha1.ConditionReady, metav1.ConditionFalse, "NoImageForRelease")

	w.set(t, "indexed", "releases: {items: ["+old+", "+items("1.24", "v1.24.3", "localhost/scheduler:v1.24.3")+"]}, upgradePolicy: Manual")
	object = w.await(t, "indexed", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	if object.Status.Release.Image != "localhost/scheduler:v1.24.3" {
		t.Errorf("release is %+v", object.Status.Release)
	}
	// The deployed image is part of the index as another patch, so that it can be kept.
	w.set(t, "indexed", "releases: {items: ["+items("1.24", "v1.24.2", "localhost/scheduler:v1.24.3")+", "+
		items("1.24", "v1.24.3", "localhost/scheduler:v1.24.3-2")+"]}, upgradePolicy: Manual")
	object = w.await(t, "indexed", v1alpha1.ConditionUpgradeAvailable, metav1.ConditionTrue, "UpgradePolicyManual")
	if text := message(object, v1alpha1.ConditionUpgradeAvailable); !has(text, "v1.24.3-2") {
		t.Errorf("message: %s", text)
	}
	w.patch(t, "indexed", `{"spec":{"upgradePolicy":"Automatic"}}`)
	run.Eventually(t, "the upgrade is deployed", func(context.Context) (bool, string) {
		s := w.get(t, "indexed").Status
		return s.Release != nil && s.Release.Image == "localhost/scheduler:v1.24.3-2", fmt.Sprint(s.Release)
	})
	w.delete(t, "indexed")
}

// set replaces the spec of an object.
func (w *world) set(t *testing.T, name, text string) {
	t.Helper()
	var wanted v1alpha1.CustomScheduler
	if err := unmarshal("spec: {"+text+"}", &wanted); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "object "+name+" is changed", func(ctx context.Context) (bool, string) {
		object := w.get(t, name)
		object.Spec = wanted.Spec
		err := w.kube.Update(ctx, object)
		return err == nil, fmt.Sprint(err)
	})
}

// checkPermissions checks that the controller used each verb that it is granted on each resource.
func (w *world) checkPermissions(t *testing.T) {
	t.Helper()
	requests, err := audit.Requests(auditLog, "")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range requests {
		if r.User == w.account() {
			resource := r.Resource
			if r.Subresource != "" {
				resource += "/" + r.Subresource
			}
			used[r.Verb+" "+resource] = true
		}
	}
	used["get endpoints"] = true // read until the API server of the test has written its EndpointSlice
	unused := map[string]bool{}
	for _, rules := range controller.Permissions() {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if !used[verb+" "+resource] {
						unused[verb+" "+resource] = true
					}
				}
			}
		}
	}
	var list []string
	for permission := range unused {
		list = append(list, permission)
	}
	slices.Sort(list)
	if text := strings.Join(list, "\n"); text != strings.TrimSpace(withoutRequest) {
		t.Errorf("granted and not used by this test:\n%s\nwant:\n%s", text, withoutRequest)
	}
}

// withoutRequest are permissions that are used without a request of that verb, or for schedulers
// and in states of a cluster that the test does not have: server-side apply creates with a patch;
// the API server checks bind; extenders have a Service, a NetworkPolicy and a PodDisruptionBudget;
// plugins have a ClusterRole; a failed rollout reads a log.
const withoutRequest = `
bind clusterroles
bind roles
create clusterrolebindings
create clusterroles
create configmaps
create deployments
create networkpolicies
create poddisruptionbudgets
create roles
create serviceaccounts
create services
delete clusterroles
delete networkpolicies
delete poddisruptionbudgets
delete services
get clusterroles
get networkpolicies
get poddisruptionbudgets
get pods/log
patch clusterroles
patch events
patch networkpolicies
patch poddisruptionbudgets
patch services
`
