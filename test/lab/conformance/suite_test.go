//go:build linux && labs

package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// suite is upstream's e2e suite of a release, and the program of its image for pods that answer.
type suite struct {
	release versions.Release
	// e2e and agnhost are the compiled programs.
	e2e, agnhost string
	// images are the names of the images that the specs use, by program.
	images map[string][]string
}

// compile compiles the suite from the module of the release.
func compile(t *testing.T, name string) suite {
	t.Helper()
	release, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	s := suite{release: release, images: map[string][]string{}}
	if s.e2e, err = compileSuite(t, release); err != nil {
		t.Fatal(err)
	}
	agnhost := build.Program{Name: "agnhost", Package: "k8s.io/kubernetes/test/images/agnhost"}
	s.agnhost, err = controlplane.Build(t.Context(), build.Options{Release: release, Programs: []build.Program{agnhost}})
	if err != nil {
		t.Fatal(err)
	}
	s.readImages(t)
	return s
}

// unlisted is the image in the manifest of the DRA driver of the suite since 1.34,
// test/e2e/testing-manifests/dra/dra-test-driver-proxy.yaml. That suite does not list it, the suite
// of 1.25 does.
const unlisted = "registry.k8s.io/sig-storage/hostpathplugin:v1.7.3"

// readImages asks the suite for the names of its images.
func (s *suite) readImages(t *testing.T) {
	t.Helper()
	listed := run.Command(t, exec.CommandContext(run.Context(t), s.e2e, "--list-images")).OK(t)
	for _, reference := range append(strings.Fields(listed.Stdout), unlisted) {
		name := reference[strings.LastIndex(reference, "/")+1:]
		program, _, _ := strings.Cut(name, ":")
		if !slices.Contains(s.images[program], reference) {
			s.images[program] = append(s.images[program], reference)
		}
	}
	for _, program := range []string{"agnhost", "busybox", "pause"} {
		if len(s.images[program]) == 0 {
			t.Fatalf("the suite lists no image of %s:\n%s", program, listed.Stdout)
		}
	}
}

// load gives the workers the images of the suite that its specs of scheduling use: agnhost is a
// program on busybox, and busybox and pause are the lab's own. The pods of hostpathplugin only run
// its shell: the specs of DRA for the control plane publish devices without a kubelet's plugin.
func (s *suite) load(t *testing.T, n *labs.Node) {
	t.Helper()
	for _, name := range n.Workers() {
		worker := n.On(t, name)
		for _, agnhost := range s.images["agnhost"] {
			worker.Import(t, agnhost, "/agnhost", image.File{Path: "/agnhost", Source: s.agnhost})
		}
		have := strings.Fields(worker.Exec(t, "ctr", "-n", "k8s.io", "images", "ls", "-q").OK(t).Stdout)
		for program, own := range map[string]string{
			"busybox": lab.BusyboxImage, "pause": lab.PauseImage, "hostpathplugin": lab.BusyboxImage,
		} {
			for _, name := range s.images[program] {
				if !slices.Contains(have, name) {
					worker.Exec(t, "ctr", "-n", "k8s.io", "images", "tag", own, name).OK(t)
				}
			}
		}
	}
}

// focus matches the names of the specs: scheduling, and since 1.34 DRA without a kubelet plugin.
const focus = `\[sig-scheduling\]|\[sig-node\] \[DRA\] control plane`

// excluded has patterns of the names of specs that these labs cannot run.
var excluded = []struct{ pattern, reason string }{
	{"GPUDevicePlugin", "needs NVIDIA GPUs and the images of their driver"},
	// Since 1.21 the spec is not part of the conformance suite, and does not connect.
	{`different hostIP and protocol \[Conformance\]`,
		"connects to the pods with curl and a netcat for UDP, which the image of agnhost here does not have"},
}

// run runs the specs with a focus and returns the results without release and column.
func (s *suite) run(t *testing.T, n *labs.Node, focus string) []conformance.Result {
	t.Helper()
	dir := t.TempDir()
	var skip []string
	for _, e := range excluded {
		skip = append(skip, e.pattern)
	}
	args := []string{
		"--kubeconfig", n.Lab.Kubeconfig(), "--provider=skeleton", "--num-nodes=2", "--report-dir", dir,
		"--ginkgo.focus", focus, "--ginkgo.skip", strings.Join(skip, "|"),
		// The order is random, and a spec can fail because of the one before: "basic preemption works"
		// does not wait until pods of "preemption by critical pod" are gone. Columns compare only in the
		// same order.
		"--ginkgo.seed", "1",
	}
	log, err := os.Create(filepath.Join(dir, "e2e.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), s.e2e, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	err = cmd.Run() // it fails if a spec fails
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", cmd, err)
	}
	reports, globErr := filepath.Glob(filepath.Join(dir, "junit*.xml"))
	if globErr != nil || len(reports) != 1 {
		t.Fatalf("run %s: %v, and it wrote %d reports:\n%s", cmd, err, len(reports), excerpt(log.Name()))
	}
	data, err := os.ReadFile(reports[0])
	if err != nil {
		t.Fatal(err)
	}
	results, filtered, err := conformance.ParseReport(data)
	if err != nil {
		t.Fatal(err)
	}
	results = append(results, leftOut(filtered, focus)...)
	for _, r := range results {
		if r.Outcome == conformance.Failed {
			t.Logf("%s failed: %s\n%s", r.Spec, r.Note, excerpt(log.Name()))
		}
	}
	return results
}

// leftOut returns the results of the specs with a focus that are excluded.
func leftOut(filtered []string, focus string) (results []conformance.Result) {
	for _, name := range filtered {
		for _, e := range excluded {
			if regexp.MustCompile(focus).MatchString(name) && regexp.MustCompile(e.pattern).MatchString(name) {
				results = append(results,
					conformance.Result{Spec: name, Outcome: conformance.Excluded, Note: e.reason})
				break
			}
		}
	}
	return results
}

// runAll runs all specs, and each one that fails once more. The excluded specs are in the results.
func (s *suite) runAll(t *testing.T, n *labs.Node, column conformance.Column) []conformance.Result {
	t.Helper()
	results := s.run(t, n, focus)
	if len(results) == 0 {
		t.Fatal("no spec ran")
	}
	for i, r := range results {
		if r.Outcome != conformance.Failed {
			continue
		}
		again := s.run(t, n, regexp.QuoteMeta(r.Spec))
		if len(again) == 1 && again[0].Outcome == conformance.Passed {
			results[i].Outcome = conformance.Retried
		}
	}
	for i := range results {
		results[i].Release, results[i].Column = s.release.String(), column
	}
	return results
}

// excerpt returns the end of a log of the suite, and the events of namespaces in it: only they show
// which component deleted a pod.
func excerpt(path string) string {
	const most = 6000
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprint(err)
	}
	var events strings.Builder
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, " - event for ") {
			events.WriteString(line)
		}
	}
	return events.String() + "\n" + string(data[max(0, len(data)-most):])
}
