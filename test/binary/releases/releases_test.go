//go:build linux && releases

// Package releases tests differences between releases of Kubernetes, on binaries of these releases.
package releases

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// releases are one of each config API that kube-scheduler 1.24.3, the subject of the other tests,
// does not prefer: v1 at its beginning together with v1beta3, v1 alone, and the release that go.mod
// pins.
var releases = []string{"v1.25.4", "v1.29.2", "v1.36.3"}

const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
`

// The scheduler that is built for a release reports that release, and accepts every preset that is
// rendered for it and the conversion of the configuration in Platform9's article.
func TestSchedulerOfEveryReleaseReadsWhatIsRenderedForIt(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			dir := t.TempDir()
			scheduler := filepath.Join(dir, "kube-scheduler")
			run.PMKSched(t, "build", "--branch", release, "--binary", scheduler).OK(t)
			if got := strings.TrimSpace(must(t, exec.Command(scheduler, "--version"))); got != "Kubernetes "+release {
				t.Errorf("--version prints %q", got)
			}
			requests := map[string]profiles.Request{}
			for _, preset := range profiles.Presets() {
				requests[preset.Name] = profiles.Request{Preset: preset.Name}
			}
			for _, name := range []string{"as-printed.yaml", "my-scheduler.yaml"} {
				article, err := os.ReadFile("../../testdata/article/" + name)
				if err != nil {
					t.Fatal(err)
				}
				requests["article "+name] = profiles.Request{Source: article, SourceName: name}
			}
			for name, request := range requests {
				t.Run(name, func(t *testing.T) { accepts(t, scheduler, release, request) })
			}
		})
	}
}

// accepts makes the binary decode, default and validate the configuration that is rendered for its
// release. It needs no API server for that.
func accepts(t *testing.T, scheduler, branch string, request profiles.Request) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config, out := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml"), filepath.Join(dir,
		"out.yaml")
	release, err := versions.Parse(branch)
	if err != nil {
		t.Fatal(err)
	}
	request.Release, request.SchedulerName, request.LeaseNamespace, request.Kubeconfig, request.LeaderElect = release,
		"my-scheduler", "kube-system", kubeconfig, true
	rendered, err := profiles.Render(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(kubeconfig, []byte(standInKubeconfig), 0o600),
		os.WriteFile(config, rendered.YAML, 0o600)); err != nil {
		t.Fatal(err)
	}
	must(t, exec.Command(scheduler, "--config", config, "--secure-port=0", "--master=https://127.0.0.1:1",
		"--write-config-to", out))
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("the scheduler wrote nothing: %v", err)
	}
	if !strings.Contains(string(written), "schedulerName: my-scheduler") {
		t.Errorf("the scheduler understood something else:\n%s", written)
	}
}

func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, stderr.String())
	}
	return string(out)
}
