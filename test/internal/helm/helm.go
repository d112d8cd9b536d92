//go:build linux

// Package helm runs Helm and pmk-sched for tests of charts.
package helm

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Run runs Helm, which `make bin/helm` compiles, and returns its standard output.
func Run(t testing.TB, args ...string) string {
	t.Helper()
	return run.Command(t, exec.CommandContext(run.Context(t), run.Binary(t, "helm"), args...)).OK(t).Stdout
}

// Render is `pmk-sched render --offline` of a scheduler called my-scheduler.
func Render(t testing.TB, args ...string) string {
	t.Helper()
	return render(t, []string{"render"}, args...)
}

func render(t testing.TB, command []string, args ...string) string {
	t.Helper()
	args = append(append(command, "--offline", "--branch", "v1.24.3", "--name", "my-scheduler", "--image",
		"localhost/my-scheduler:v1"), args...)
	return run.PMKSched(t, args...).OK(t).Stdout
}

// Chart returns the directory of a new chart of the same scheduler.
func Chart(t testing.TB, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chart")
	render(t, []string{"render", "chart"}, append(args, "--to-dir", dir)...)
	return dir
}
