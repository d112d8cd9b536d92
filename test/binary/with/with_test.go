//go:build linux

// Package with tests what `pmk-sched build --with` makes, with real releases of
// Kubernetes: plugins that come with the program, one begun with `plugin new`, and
// those of other projects.
package with

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the pmk-sched that is tested.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "with-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pmk-sched")
	if out, err := exec.Command("go", "build", "-o", program, "../../../cmd/pmk-sched").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pmk-sched: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// pmkSched runs the program in a folder and returns what it prints and says.
func pmkSched(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, talk bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &talk
	err = cmd.Run()
	return out.String(), talk.String(), err
}

// built is what `build -o json` prints.
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
	stdout, stderr, err := pmkSched(t, dir, append([]string{"build", "--binary", binary, "-o", "json"}, args...)...)
	if err != nil {
		t.Fatalf("build %q: %v\n%s", args, err, stderr)
	}
	var b built
	if err := json.Unmarshal([]byte(stdout), &b); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	return b
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`

// configure has a kube-scheduler read a configuration whose profile is given.
// Plugins are made of their arguments by that, and no API server is asked.
func configure(t *testing.T, scheduler, api, profile string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "out.yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s}\nleaderElection: {leaderElect: false}\nprofiles:\n- schedulerName: tested\n%s",
		api, filepath.Join(dir, "kubeconfig"), profile)
	for name, data := range map[string]string{file: text, filepath.Join(dir, "kubeconfig"): kubeconfig} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.CommandContext(t.Context(), scheduler, "--config", file, "--secure-port=0", "--master=https://127.0.0.1:1", "--write-config-to", out).CombinedOutput()
	if err != nil {
		return string(said), err
	}
	written, err := os.ReadFile(out)
	return string(written), err
}

func TestAShippedPluginIsInTheBinaryAndTakesItsArgumentsOnly(t *testing.T) {
	dir := t.TempDir()
	first := build(t, dir, "one", "--branch", "v1.24.3", "--with", "builtin:blockall")
	if len(first.Plugins) != 1 || first.Plugins[0].Name != "BlockAll" || strings.Join(first.Plugins[0].Points, " ") != "filter" {
		t.Errorf("plugins: %+v", first.Plugins)
	}
	if !strings.HasPrefix(first.Reference, "localhost/kube-scheduler:v1.24.3-plugins-") {
		t.Errorf("reference %s does not tell the image from one without plugins", first.Reference)
	}
	const enabled = "  plugins: {multiPoint: {enabled: [{name: BlockAll}]}}\n  pluginConfig: [{name: BlockAll, args: {%s: hello}}]\n"
	if out, err := configure(t, filepath.Join(dir, "one"), "v1beta3", fmt.Sprintf(enabled, "message")); err != nil || !strings.Contains(out, "name: BlockAll") {
		t.Errorf("a configuration that enables BlockAll: %v\n%s", err, out)
	}
	if out, err := configure(t, filepath.Join(dir, "one"), "v1beta3", fmt.Sprintf(enabled, "mesage")); err == nil || !strings.Contains(out, `unknown field \"mesage\"`) {
		t.Errorf("a misspelt argument: %v\n%s", err, out)
	}
	if second := build(t, dir, "two", "--branch", "v1.24.3", "--with", "builtin:blockall"); !second.Cached || second.Inputs != first.Inputs {
		t.Error("the same was built again")
	}
}

func TestABegunPluginPassesItsTestsAndBuilds(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, err := pmkSched(t, dir, "plugin", "new", "--branch", "v1.24.3", "QuietHours"); err != nil || strings.Contains(stderr, "warning") {
		t.Fatalf("plugin new: %v\n%s", err, stderr)
	}
	plugin := filepath.Join(dir, "quiethours")
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir, test.Env = plugin, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	b := build(t, plugin, "scheduler", "-f", "pmk-sched.yaml")
	if len(b.Plugins) != 1 || b.Plugins[0].Name != "QuietHours" || strings.Join(b.Plugins[0].Points, " ") != "filter score" {
		t.Errorf("plugins: %+v", b.Plugins)
	}
	rendered, stderr, err := pmkSched(t, plugin, "render", "--offline", "-f", "pmk-sched.yaml")
	if err != nil || !strings.Contains(rendered, b.Reference) || !strings.Contains(rendered, "name: QuietHours") {
		t.Errorf("render: %v\n%s\n%s", err, stderr, rendered)
	}
	out, err := configure(t, filepath.Join(plugin, "scheduler"), "v1beta3", "  plugins: {multiPoint: {enabled: [{name: QuietHours}]}}\n")
	if err != nil {
		t.Errorf("a configuration that enables it: %v\n%s", err, out)
	}
}

// What plugin new begins for one release's own framework is compiled and tested with the Go of that release.
func TestABegunNativePluginPassesItsTestsAndBuilds(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, err := pmkSched(t, dir, "plugin", "new", "--native", "--branch", "v1.24.3", "KeepOff"); err != nil || strings.Contains(stderr, "warning: keepoff") {
		t.Fatalf("plugin new: %v\n%s", err, stderr)
	}
	plugin := filepath.Join(dir, "keepoff")
	b := build(t, plugin, "scheduler", "-f", "pmk-sched.yaml")
	if len(b.Plugins) != 1 || b.Plugins[0].Name != "KeepOff" || strings.Join(b.Plugins[0].Points, " ") != "filter" {
		t.Errorf("plugins: %+v", b.Plugins)
	}
	// With the flags of the build, what is compiled already is compiled once.
	test := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-tags", "selinux,notest", "-v", "./...")
	test.Dir, test.Env = plugin, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=go"+b.Go)
	if readme, err := os.ReadFile(filepath.Join(plugin, "README.md")); err != nil || !strings.Contains(string(readme), "GOTOOLCHAIN=go"+b.Go+" go test ./...") {
		t.Errorf("the README does not say how to test with Go %s: %v\n%s", b.Go, err, readme)
	}
	if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestPodsAreKeptOffNodesWithTheLabel") {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	rendered, stderr, err := pmkSched(t, plugin, "render", "--offline", "-f", "pmk-sched.yaml")
	if err != nil || !strings.Contains(rendered, b.Reference) || !strings.Contains(rendered, "name: KeepOff") {
		t.Errorf("render: %v\n%s\n%s", err, stderr, rendered)
	}
	out, err := configure(t, filepath.Join(plugin, "scheduler"), "v1beta3", "  plugins: {multiPoint: {enabled: [{name: KeepOff}]}}\n")
	if err != nil {
		t.Errorf("a configuration that enables it: %v\n%s", err, out)
	}
	_, stderr, err = pmkSched(t, plugin, "build", "-f", "pmk-sched.yaml", "--branch", "v1.29.2", "--binary", "never")
	if err == nil || !strings.Contains(stderr, "does not fit v1.29.2") {
		t.Errorf("for another release: %v\n%s", err, stderr)
	}
}

const schedulerPlugins = "sigs.k8s.io/scheduler-plugins@v0.32.7:"

func TestANativePluginOfAnotherMinorIsRefusedAtOnce(t *testing.T) {
	for _, release := range []string{"v1.24.3", "v1.34.2"} {
		start := time.Now()
		_, stderr, err := pmkSched(t, t.TempDir(), "build", "--branch", release, "--with", schedulerPlugins+"pkg/coscheduling", "--binary", "never")
		if err == nil || !strings.Contains(stderr, "written for Kubernetes 1.32 to 1.33 and does not fit "+release) || strings.Contains(stderr, "compile") {
			t.Errorf("%s: %v\n%s", release, err, stderr)
		}
		t.Logf("%s was refused in %s", release, time.Since(start))
	}
}
