// Package helm runs Helm and pmk-sched for tests of charts.
package helm

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Run runs Helm and returns its standard output. The first call compiles Helm into bin/.
func Run(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, program(t, "helm", "hack/tools/helm", "helm.sh/helm/v3/cmd/helm"), args...)
}

// Render is `pmk-sched render --offline` of a scheduler called my-scheduler.
func Render(t testing.TB, args ...string) string {
	t.Helper()
	args = append([]string{"render", "--offline", "--branch", "v1.24.3", "--name", "my-scheduler", "--image", "localhost/my-scheduler:v1"}, args...)
	return run(t, program(t, "pmk-sched", ".", "./cmd/pmk-sched"), args...)
}

// Chart returns the directory of a new chart of the same scheduler.
func Chart(t testing.TB, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chart")
	Render(t, append(args, "--format", "helm", "-o", dir)...)
	return dir
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

var programs sync.Map // path to sync.OnceValue

// program compiles a program into bin/ once and returns its path.
func program(t testing.TB, name, module, pkg string) string {
	t.Helper()
	_, source, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(source), "../../..")
	path := filepath.Join(root, "bin", name)
	build, _ := programs.LoadOrStore(path, sync.OnceValue(func() string {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
		cmd.Dir = filepath.Join(root, module)
		if out, err := cmd.CombinedOutput(); err != nil {
			return err.Error() + "\n" + string(out)
		}
		return ""
	}))
	if failure := build.(func() string)(); failure != "" {
		t.Fatalf("build %s: %s", name, failure)
	}
	return path
}
