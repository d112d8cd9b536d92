//go:build linux && cases

package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/toyimage"
)

// The object waits for its ConfigMap, and follows it: the generation of the object does not change.
func TestReleasesOfAConfigMapAreFollowed(t *testing.T) {
	w := newWorld(t, server)
	o := w.options()
	o.Resync = 2 * time.Second
	w.start(t, o)
	name, spec := documented(t)
	w.mustCreate(t, name, spec)
	object := w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "ReleasesUnreadable")
	if text := message(object, v1alpha1.ConditionStalled); !has(text, name+"-releases") {
		t.Errorf("message: %s", text)
	}
	index := items("1.24", "v1.24.3", "localhost/scheduler:v1")
	w.releases(t, name+"-releases", index)
	w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.runs(t, name, "localhost/scheduler:v1", "--config=")

	w.changeReleases(t, name+"-releases", items("1.24", "v1.24.3", "localhost/scheduler:v2"))
	w.runs(t, name, "localhost/scheduler:v2", "--config=")
	flagged := strings.TrimSuffix(items("1.24", "v1.24.3", "localhost/scheduler:v2"), "}") + ", args: [--v=7]}"
	w.changeReleases(t, name+"-releases", flagged)
	w.runs(t, name, "localhost/scheduler:v2", "--v=7")
	w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")

	w.changeReleases(t, name+"-releases", "{minor: '1.24'}")
	w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "ReleasesUnreadable")
	w.runs(t, name, "localhost/scheduler:v2", "--v=7")
	w.delete(t, name)
}

// An index in a registry chooses the images: it is refused without the signature of the object's
// key, and what is deployed stays.
func TestReleasesOfARegistryNeedTheSignatureOfTheKey(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	dir := t.TempDir()
	run.KeyPair(t, dir, "mine")
	run.KeyPair(t, dir, "foreign")
	registry := toyimage.Registry(t)
	push := func(repository, image, key string) string {
		index := &v1alpha1.SchedulerReleases{Releases: []v1alpha1.SchedulerRelease{{Minor: "1.24", Release: "v1.24.3",
			Image: image, Configuration: "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"}}}
		if key != "" {
			key = filepath.Join(dir, key+".pem")
		}
		reference, err := pack.PushReleases(t.Context(), w.session(t, ""), index, registry+"/"+repository, key)
		if err != nil {
			t.Fatal(err)
		}
		return reference
	}
	from := func(reference, key string) string {
		spec := "releases: {oci: '" + reference + "'"
		if key != "" {
			spec += ", publicKey: " + quote(publicKey(t, dir, key))
		}
		return spec + "}"
	}
	signed := push("signed", "localhost/scheduler:v1", "mine")
	unsigned := push("unsigned", "localhost/scheduler:unsigned", "")
	foreign := push("foreign", "localhost/scheduler:foreign", "foreign")
	for name, spec := range map[string]string{"signed": from(signed, "mine"), "without-key": from(unsigned, "")} {
		w.mustCreate(t, name, "spec: {"+spec+"}")
	}
	refused := map[string]string{"unsigned": from(unsigned, "mine"), "foreign": from(foreign, "mine")}
	for name, spec := range refused {
		w.mustCreate(t, name, "spec: {"+spec+"}")
	}
	for name, image := range map[string]string{
		"signed": "localhost/scheduler:v1", "without-key": "localhost/scheduler:unsigned",
	} {
		w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
		w.runs(t, name, image, "--config=")
	}
	for name := range refused {
		w.awaitRefused(t, name)
		if left := w.objectsOf(t, name); left != "" {
			t.Errorf("%s: deployed: %s", name, left)
		}
	}

	w.set(t, "signed", refused["foreign"])
	w.awaitRefused(t, "signed")
	w.runs(t, "signed", "localhost/scheduler:v1", "--config=")
	w.set(t, "foreign", from(foreign, "foreign"))
	w.await(t, "foreign", v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
	w.runs(t, "foreign", "localhost/scheduler:foreign", "--config=")
}

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
