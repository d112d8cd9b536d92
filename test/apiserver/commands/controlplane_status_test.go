//go:build linux && cases

package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// nodeFindings returns the findings of `status` about nodes as "code node", and fails the test
// unless the exit status fits.
func nodeFindings(t *testing.T, r run.Result) []string {
	t.Helper()
	var status struct{ Findings []health.Finding }
	if err := json.Unmarshal([]byte(r.Stdout), &status); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
	found := []string{}
	for _, f := range status.Findings {
		if f.Kind == health.Node {
			found = append(found, string(f.Code)+" "+f.Name)
		}
	}
	if (r.Code == 3) != (len(status.Findings) > 0) {
		t.Errorf("%d findings: %s", len(status.Findings), r)
	}
	return found
}

// testStatusOfDefaultSchedulers: a replaced default scheduler that is not ready, or of another
// minor than the API server, is a finding; one that is ready and one that was never replaced are
// not.
func testStatusOfDefaultSchedulers(t *testing.T, pmkSched func(...string) run.Result) {
	pods := server.Client(t).CoreV1().Pods(metav1.NamespaceSystem)
	name := "kube-scheduler-" + controlPlane[0]
	runs := func(ready bool, image string) {
		t.Helper()
		pod, err := pods.Get(run.Context(t), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "kube-scheduler", Ready: ready,
			Image: "registry.example.com/my-scheduler:" + image}}
		if _, err := pods.UpdateStatus(run.Context(t), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, staticpod.AnnotationReplacement, value)
		if _, err := pods.Patch(run.Context(t), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := nodeFindings(t, pmkSched("status", "-o", "json")); !slices.Equal(got, want) {
			t.Errorf("%s: findings %q, want %q", when, got, want)
		}
	}
	runs(false, "v1.20.0")
	expect("not replaced, and not ready")
	annotate(`"20260101"`)
	expect("replaced, and not ready", "default-not-ready "+controlPlane[0], "release-skew "+controlPlane[0])
	runs(true, "v1.20.0")
	expect("replaced, and of another minor", "release-skew "+controlPlane[0])
	runs(true, apiserver.Release)
	expect("replaced and ready")
	annotate("null")
}

const replacedManifest = `apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler, namespace: kube-system, annotations: {` + staticpod.AnnotationReplacement + `: "20260101"}}
spec:
  containers:
  - name: kube-scheduler
    image: ` + replacedImage + `
`

const replacedImage = "registry.example.com/my-scheduler:v1.23.17"

// testStatusOfNodeFiles: a run that was killed and a file that was edited are findings; a finished
// run is not.
func testStatusOfNodeFiles(t *testing.T, pmkSched func(...string) run.Result) {
	root := t.TempDir()
	files := staticpod.Files{Resolve: func(path string) (string, error) { return filepath.Join(root, path), nil }}
	const manifest, config = "/etc/kubernetes/manifests/kube-scheduler.yaml", "/etc/kubernetes/pmk-sched/config-1.yaml"
	write := func(path, text string) *staticpod.File {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		file := &staticpod.File{Data: []byte(text), Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()}
		if err := files.Write(path, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	expect := func(when string, want ...string) run.Result {
		t.Helper()
		r := pmkSched("--node-root", root, "status", "-o", "json")
		if diff := cmp.Diff(append([]string{}, want...), nodeFindings(t, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		return r
	}
	original := write(manifest, strings.Replace(replacedManifest, replacedImage, upstreamImage, 1))
	upgrade := func(args ...string) run.Result {
		t.Helper()
		return pmkSched(append([]string{"--node-root", root, "upgrade", "--default", "--yes"}, args...)...)
	}
	expect("not replaced")
	upgrade().Fails(t, 2, "the default scheduler of this node is not replaced")
	upgrade("--name", "x").Fails(t, 2, "--default excludes")

	node, configuration := controlPlane[0], "kind: KubeSchedulerConfiguration\n"
	b := &staticpod.Backup{
		Layout: "kubeadm", Node: node, Pod: "kube-scheduler-" + node, Namespace: metav1.NamespaceSystem,
		Container: "kube-scheduler", Image: replacedImage,
		Files: []staticpod.Saved{{Path: manifest}}, ConfigFile: config, ConfigHash: staticpod.Hash([]byte(configuration)),
	}
	content := staticpod.Content{Original: []*staticpod.File{original}, Previous: []*staticpod.File{original},
		Written: [][]byte{[]byte(replacedManifest)}}
	if err := b.Create(files, time.Now(), content); err != nil {
		t.Fatal(err)
	}
	if err := b.Note("swap", staticpod.Started); err != nil {
		t.Fatal(err)
	}
	expect("killed", "replacement-unfinished "+node).Prints(t, `stopped at step \"swap\"`)
	upgrade().Fails(t, 2, "is unfinished", "pmk-sched restore")

	write(manifest, replacedManifest)
	write(config, configuration)
	if err := b.Note("verify", staticpod.Replaced); err != nil {
		t.Fatal(err)
	}
	expect("replaced")
	upgrade().Fails(t, 2, "the replacement of the default scheduler of node "+node+" does not record its request",
		"`pmk-sched replace`")
	record := func(release string) {
		t.Helper()
		parsed, err := versions.Parse(release)
		if err != nil {
			t.Fatal(err)
		}
		request := v1alpha1.CustomScheduler{}
		request.Spec.Image.Reference, request.Spec.Image.RequireSignature = replacedImage, "-----BEGIN PUBLIC KEY-----"
		text, err := json.Marshal(map[string]any{"request": request, "release": parsed})
		if err != nil {
			t.Fatal(err)
		}
		write(b.Dir()+"/record.json", string(text))
	}
	record("v1.23.17")
	upgrade().Fails(t, 2, "the image must be signed, and upgrade would build it without a signature",
		"--branch v1.24.3 --tag registry.example.com/my-scheduler:v1.24.3")

	write(manifest, replacedManifest+"    command: [kube-scheduler, --v=3]\n")
	expect("edited", "node-files-drift "+node).Prints(t, "edited after the replacement",
		"+    command: [kube-scheduler, --v=3]")
	write(manifest, replacedManifest)
	write(config, configuration+"parallelism: 1\n")
	expect("configuration edited", "node-files-drift "+node).Prints(t, "the configuration was edited")
	write(config, configuration)
	expect("configuration restored")
	record(apiserver.Release)
	upgrade().OK(t).Prints(t, "the default scheduler of node "+node+" is up to date: "+apiserver.Release)
}
