//go:build linux

package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// documented returns the name and the spec of the object in docs/controller.md.
func documented(t *testing.T) (name, spec string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run.Root(), "docs", "controller.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## An object\n\n```yaml\n")
	object, _, _ := strings.Cut(after, "```\n")
	var decoded v1alpha1.CustomScheduler
	if err := unmarshal(object, &decoded); err != nil {
		t.Fatal(err)
	}
	_, spec, _ = strings.Cut(object, "spec:\n")
	return decoded.Name, "spec:\n" + spec
}

// awaitRefused waits until an object is stalled because no key signed its release index.
func (w *world) awaitRefused(t *testing.T, name string) {
	t.Helper()
	object := w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "ImageRefused")
	if text := message(object, v1alpha1.ConditionStalled); !has(text, "has no signature of the key") {
		t.Errorf("%s: message: %s", name, text)
	}
	w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionFalse, "ImageRefused")
}

// runs waits until the Deployment of a scheduler and the status of its object have an image, and
// the command line an argument that begins with arg.
func (w *world) runs(t *testing.T, name, image, arg string) {
	t.Helper()
	deployments := w.server.Client(t).AppsV1().Deployments(w.ns)
	run.Eventually(t, name+" runs "+image+" with "+arg, func(ctx context.Context) (bool, string) {
		d, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		container, status := d.Spec.Template.Spec.Containers[0], w.get(t, name).Status
		line := slices.Concat(container.Command, container.Args)
		return container.Image == image && status.Release != nil && status.Release.Image == image &&
			slices.ContainsFunc(line, func(a string) bool { return strings.HasPrefix(a, arg) }), fmt.Sprint(line, status)
	})
}

// changeReleases replaces the release index in a ConfigMap.
func (w *world) changeReleases(t *testing.T, name, items string) {
	t.Helper()
	if err := w.kube.Update(t.Context(), w.releaseIndex(name, items)); err != nil {
		t.Fatal(err)
	}
}

// releases creates a ConfigMap with a release index.
func (w *world) releases(t *testing.T, name, items string) {
	t.Helper()
	if err := w.kube.Create(t.Context(), w.releaseIndex(name, items)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) releaseIndex(name, items string) *corev1.ConfigMap {
	text := "{apiVersion: " + v1alpha1.APIVersion + ", kind: SchedulerReleases, releases: [" + items + "]}"
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Data: map[string]string{"releases.yaml": text}}
}
