//go:build linux

package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/toyimage"
)

// Whoever may write objects of the namespace, or the ConfigMaps of their releases, chooses images
// and keys. The key and the repositories of the controller hold all the same.
func TestNoObjectLiftsTheBoundsOfTheController(t *testing.T) {
	w := newWorld(t, server)
	// Images that are read have an architecture, which the kubelet of a node reports.
	_, err := server.Client(t).CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"kubernetes.io/arch":"`+runtime.GOARCH+`"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run.KeyPair(t, dir, "mine")
	run.KeyPair(t, dir, "foreign")
	mine, foreign := publicKey(t, dir, "mine"), publicKey(t, dir, "foreign")
	registry := toyimage.Registry(t)
	team, elsewhere := registry+"/team/", registry+"/team-b/"
	digest := toyimage.Push(t, team+"signed:v1", filepath.Join(dir, "mine.pem"), nil)
	toyimage.Push(t, team+"unsigned:v1", "", nil)
	toyimage.Push(t, team+"foreign:v1", filepath.Join(dir, "foreign.pem"), nil)
	toyimage.Push(t, elsewhere+"signed:v1", filepath.Join(dir, "mine.pem"), nil)
	w.bounds = session.Bounds{Key: mine, Repositories: []string{registry + "/team"}}
	w.start(t, w.options())

	image := func(reference, key string) string {
		spec := "source: {branch: v1.24.3}, image: {reference: '" + reference + "'"
		if key != "" {
			spec += ", requireSignature: " + quote(key)
		}
		return spec + "}"
	}
	w.releases(t, "elsewhere", items("1.24", "v1.24.3", elsewhere+"signed:v1"))
	w.releases(t, "unsigned", items("1.24", "v1.24.3", team+"unsigned:v1"))
	extender := func(image string, sidecar string) string {
		return ", extenders: [{name: NAME-extender, ignorable: true, filterVerb: filter, policies: [{name: timestamp}], image: '" + image + "', sidecar: " + sidecar + "}]"
	}
	const unsigned, refused = "has no signature of the key", "is in none of the allowed repositories"
	cases := map[string]struct{ spec, message string }{
		"no key":            {image(team+"unsigned:v1", ""), unsigned},
		"none":              {image(team+"unsigned:v1", v1alpha1.NoSignature), unsigned},
		"another key":       {image(team+"foreign:v1", foreign), unsigned},
		"items":             {"releases: {items: [" + items("1.24", "v1.24.3", team+"unsigned:v1") + "]}", unsigned},
		"configMap":         {"releases: {configMap: {name: unsigned}}", unsigned},
		"extender":          {image(team+"signed:v1", "") + extender(team+"unsigned:v1", "false"), unsigned},
		"sidecar":           {image(team+"signed:v1", "") + extender(team+"unsigned:v1", "true"), unsigned},
		"elsewhere":         {image(elsewhere+"signed:v1", ""), refused},
		"by digest":         {image(elsewhere+"signed:v1@"+digest, ""), refused},
		"docker.io":         {image("kube-scheduler:v1.24.3", ""), refused},
		"configMap, there":  {"releases: {configMap: {name: elsewhere}}", refused},
		"oci":               {"releases: {oci: '" + elsewhere + "index@" + digest + "'}", refused},
		"extender, there":   {image(team+"signed:v1", "") + extender(elsewhere+"signed:v1", "false"), refused},
		"sidecar elsewhere": {image(team+"signed:v1", "") + extender(elsewhere+"signed:v1", "true"), refused},
	}
	names := map[string]string{}
	for description, c := range cases {
		name := fmt.Sprintf("refused-%d", len(names))
		names[description] = name
		w.mustCreate(t, name, "spec: {"+strings.ReplaceAll(c.spec, "NAME", name)+"}")
	}
	for description, name := range names {
		object := w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "ImageRefused")
		if text := message(object, v1alpha1.ConditionStalled); !has(text, cases[description].message) {
			t.Errorf("%s: message: %s", description, text)
		}
		if left := w.objectsOf(t, name) + w.objectsOf(t, name+"-extender"); left != "" {
			t.Errorf("%s: deployed: %s", description, left)
		}
	}
	for name, key := range map[string]string{"the-key": mine, "no-key": "", "none": v1alpha1.NoSignature} {
		w.mustCreate(t, name, "spec: {"+image(team+"signed:v1", key)+"}")
		w.await(t, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed")
		d, err := server.Client(t).AppsV1().Deployments(w.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != team+"signed:v1@"+digest {
			t.Errorf("%s: the image is %s, want the digest that was verified", name, got)
		}
	}
}

func publicKey(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name+".pub"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quote returns a text as a YAML scalar in one line.
func quote(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
