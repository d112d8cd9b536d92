//go:build linux

// Package build tests `pmk-sched build` with real releases of Kubernetes: schedulers with bundled
// plugins, with a plugin from `plugin new` and with plugins of other projects; an extender; and an
// image that is pushed to a registry.
package build

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// pmkSched runs pmk-sched in a directory.
func pmkSched(t *testing.T, dir string, args ...string) run.Result {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), run.Program(t), args...)
	cmd.Dir = dir
	return run.Command(t, cmd)
}

// built is the output of `build -o json`.
type built struct {
	Reference, Inputs string
	// Go is the version of the compiler.
	Go      string
	Cached  bool
	Plugins []struct {
		Name   string
		Points []string
	}
}

// build builds a kube-scheduler into a file.
func build(t *testing.T, dir, binary string, args ...string) built {
	t.Helper()
	return run.Decode[built](t,
		pmkSched(t, dir, append([]string{"build", "--binary", binary, "-o", "json"}, args...)...).OK(t).Stdout)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// configure makes a kube-scheduler read a configuration with the given profile. That makes the
// plugins from their arguments, and needs no API server.
func configure(t *testing.T, scheduler, api, profile string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "out.yaml")
	text := fmt.Sprintf(
		"apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s}\n"+
			"leaderElection: {leaderElect: false}\nprofiles:\n- schedulerName: tested\n%s",
		api, filepath.Join(dir, "kubeconfig"), profile)
	for name, data := range map[string]string{file: text, filepath.Join(dir, "kubeconfig"): kubeconfig} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.CommandContext(t.Context(), scheduler, "--config", file, "--secure-port=0",
		"--master=https://127.0.0.1:1", "--write-config-to", out).CombinedOutput()
	if err != nil {
		return string(said), err
	}
	written, err := os.ReadFile(out)
	return string(written), err
}

func TestBundledPluginIsInTheBinaryAndAcceptsOnlyItsArguments(t *testing.T) {
	dir := t.TempDir()
	first := build(t, dir, "one", "--branch", "v1.24.3", "--with", "builtin:blockall")
	if len(first.Plugins) != 1 || first.Plugins[0].Name != "BlockAll" ||
		strings.Join(first.Plugins[0].Points, " ") != "filter" {
		t.Errorf("plugins: %+v", first.Plugins)
	}
	if !strings.HasPrefix(first.Reference, "localhost/kube-scheduler:v1.24.3-plugins-") {
		t.Errorf("reference %s is that of an image without plugins", first.Reference)
	}
	const enabled = "  plugins: {multiPoint: {enabled: [{name: BlockAll}]}}\n  pluginConfig: [{name: BlockAll, args: " +
		"{%s: hello}}]\n"
	if out, err := configure(t, filepath.Join(dir, "one"), "v1beta3", fmt.Sprintf(enabled, "message")); err != nil ||
		!strings.Contains(out, "name: BlockAll") {
		t.Errorf("a configuration that enables BlockAll: %v\n%s", err, out)
	}
	if out, err := configure(t, filepath.Join(dir, "one"), "v1beta3", fmt.Sprintf(enabled, "mesage")); err == nil ||
		!strings.Contains(out, `unknown field \"mesage\"`) {
		t.Errorf("a misspelt argument: %v\n%s", err, out)
	}
	if second := build(t, dir, "two", "--branch", "v1.24.3", "--with", "builtin:blockall"); !second.Cached ||
		second.Inputs != first.Inputs {
		t.Error("the same was built again")
	}
}

func TestNewPluginPassesItsTestsAndBuilds(t *testing.T) {
	dir := t.TempDir()
	if r := pmkSched(t, dir, "plugin", "new", "--branch", "v1.24.3", "QuietHours").OK(t); strings.Contains(r.Stderr,
		"warning") {
		t.Errorf("plugin new warns: %s", r)
	}
	plugin := filepath.Join(dir, "quiethours")
	// With the flag of these tests, dependencies are compiled once.
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir, test.Env = plugin, append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	b := build(t, plugin, "scheduler", "-f", "pmk-sched.yaml")
	if len(b.Plugins) != 1 || b.Plugins[0].Name != "QuietHours" ||
		strings.Join(b.Plugins[0].Points, " ") != "filter score" {
		t.Errorf("plugins: %+v", b.Plugins)
	}
	pmkSched(t, plugin, "render", "--offline", "-f", "pmk-sched.yaml").OK(t).Prints(t, b.Reference, "name: QuietHours")
	out, err := configure(t, filepath.Join(plugin, "scheduler"), "v1beta3",
		"  plugins: {multiPoint: {enabled: [{name: QuietHours}]}}\n")
	if err != nil {
		t.Errorf("a configuration that enables it: %v\n%s", err, out)
	}
}

// A plugin that plugin new creates for the framework of one release is compiled and tested with the
// Go version of that release.
func TestNewNativePluginPassesItsTestsAndBuilds(t *testing.T) {
	dir := t.TempDir()
	if r := pmkSched(t, dir, "plugin", "new", "--native", "--branch", "v1.24.3",
		"KeepOff").OK(t); strings.Contains(r.Stderr, "warning: keepoff") {
		t.Errorf("plugin new warns: %s", r)
	}
	plugin := filepath.Join(dir, "keepoff")
	b := build(t, plugin, "scheduler", "-f", "pmk-sched.yaml")
	if len(b.Plugins) != 1 || b.Plugins[0].Name != "KeepOff" || strings.Join(b.Plugins[0].Points, " ") != "filter" {
		t.Errorf("plugins: %+v", b.Plugins)
	}
	// With the flags of the build, the test reuses its compiled packages.
	test := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-tags", "selinux,notest", "-v", "./...")
	test.Dir, test.Env = plugin, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=go"+b.Go)
	if readme, err := os.ReadFile(filepath.Join(plugin, "README.md")); err != nil ||
		!strings.Contains(string(readme), "GOTOOLCHAIN=go"+b.Go+" go test ./...") {
		t.Errorf("the README does not say how to test with Go %s: %v\n%s", b.Go, err, readme)
	}
	if out, err := test.CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "--- PASS: TestPodsAreKeptOffNodesWithTheLabel") {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	pmkSched(t, plugin, "render", "--offline", "-f", "pmk-sched.yaml").OK(t).Prints(t, b.Reference, "name: KeepOff")
	out, err := configure(t, filepath.Join(plugin, "scheduler"), "v1beta3",
		"  plugins: {multiPoint: {enabled: [{name: KeepOff}]}}\n")
	if err != nil {
		t.Errorf("a configuration that enables it: %v\n%s", err, out)
	}
	pmkSched(t, plugin, "build", "-f", "pmk-sched.yaml", "--branch", "v1.29.2", "--binary", "never").Fails(t, 2,
		"does not fit v1.29.2")
}

const schedulerPlugins = "sigs.k8s.io/scheduler-plugins@v0.32.7:"

func TestNativePluginOfAnotherMinorIsRefusedBeforeItIsCompiled(t *testing.T) {
	for _, release := range []string{"v1.24.3", "v1.34.2"} {
		start := time.Now()
		r := pmkSched(t, t.TempDir(), "build", "--branch", release, "--with", schedulerPlugins+"pkg/coscheduling", "--binary",
			"never")
		r.Fails(t, 2, "written for Kubernetes 1.32 to 1.33 and does not fit "+release)
		if strings.Contains(r.Stderr, "compile") {
			t.Errorf("it was refused only after compiling: %s", r)
		}
		t.Logf("%s was refused in %s", release, time.Since(start))
	}
}

// An extender that plugin new creates passes its tests, and builds as an extender whose image
// contains the program.
func TestNewExtenderPassesItsTestsAndBuilds(t *testing.T) {
	dir := t.TempDir()
	pmkSched(t, dir, "plugin", "new", "--extender", "--branch", "v1.24.3", "Curfew").OK(t)
	plugin := filepath.Join(dir, "curfew")
	// With the flag of these tests, dependencies are compiled once.
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir, test.Env = plugin, append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	archive := filepath.Join(dir, "extender.tar")
	pmkSched(t, plugin, "build", "extender", "--with", "./curfew", "--busybox", "/bin/busybox", "--archive",
		archive).OK(t)
	program := filepath.Join(dir, "pmk-extender")
	if err := image.ExtractFile(t.Context(), image.Source{Archive: archive}, "/usr/local/bin/pmk-extender", "",
		program); err != nil {
		t.Fatal(err)
	}
	listed, err := exec.CommandContext(t.Context(), program, "-version").CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "Curfew") {
		t.Errorf("the extender does not list the policy: %v\n%s", err, listed)
	}
}

// An image is pushed to a registry, and can be pulled from there with the scheduler in it.
func TestBuildPushesToARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/sched/my-scheduler:v1"
	pmkSched(t, t.TempDir(), "build", "--branch", "v1.24.3", "--busybox", "/bin/busybox", "--tag", reference,
		"--push").OK(t).Prints(t, reference)
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "pulled.tar")
	if err := tarball.WriteToFile(archive, ref, pulled); err != nil {
		t.Fatal(err)
	}
	scheduler := filepath.Join(t.TempDir(), "kube-scheduler")
	if err := image.ExtractFile(t.Context(), image.Source{Archive: archive}, image.SchedulerPath, "",
		scheduler); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), scheduler, "--version").Output(); err != nil ||
		strings.TrimSpace(string(out)) != "Kubernetes v1.24.3" {
		t.Errorf("the pulled scheduler reports %q: %v", out, err)
	}
}
