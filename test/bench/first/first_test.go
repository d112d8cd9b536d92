//go:build linux

// Package first measures how long a new user waits for the first result, with empty caches of
// pmk-sched and of the go command. The programs come from a mirror on this machine or are compiled.
// Modules are not downloaded.
package first

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/published"
)

const (
	release = "v1.24.3"
	labName = "first"
	cluster = `---
{apiVersion: v1, kind: Node, metadata: {name: one},
  status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default},
  spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}
`
)

// BenchmarkDemo runs the script of `make demo`: a cluster, a scheduler of a preset, and one that is
// compiled with a plugin. Compiling all programs takes minutes: `-bench Demo/published` measures
// the others.
func BenchmarkDemo(b *testing.B) {
	site, _ := published.Compiled(b, release, append(programs.Kubernetes(), programs.Etcd)...)
	for _, from := range []string{programs.Published, programs.Build} {
		b.Run(from, func(b *testing.B) {
			demo := newUser(b, site, from, filepath.Join(run.Root(), "hack", "demo.sh"))
			demo.Env = append(demo.Env, "LAB="+labName)
			b.Cleanup(func() { run.PMKLab(b, "down", "--name", labName).OK(b) })
			result, whole := measure(b, demo)
			b.ReportMetric(whole, "s")
			part := regexp.MustCompile(`(?m)^ *(\d+) s  preset `).FindStringSubmatch(result.Stdout)
			if part == nil {
				b.Fatal("the demo does not print the seconds of the preset")
			}
			preset, err := strconv.ParseFloat(part[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(preset, "s/preset")
			samples.Claim("docs/performance.md", "| `deploy --preset binpack` and the first pod | at most 20 |").
				AtMost(b, "seconds from deploy to a bound pod", preset, 20)
		})
	}
}

// BenchmarkSimulate simulates a pending pod, without plugins, and with a portable plugin. `build`
// compiles the same scheduler as the simulation with the plugin.
func BenchmarkSimulate(b *testing.B) {
	site, _ := published.Compiled(b, release, "kube-apiserver", "kube-scheduler", programs.Etcd)
	snapshot := filepath.Join(b.TempDir(), "cluster.tar.gz")
	run.PMKSched(b, "snapshot", "--from", run.WriteFile(b, "objects.yaml", cluster), "--to-file", snapshot).OK(b)
	simulate := []string{"simulate", "pending", "--snapshot", snapshot, "--branch", release}
	with := []string{"--with", "builtin:timestamp"}
	for _, side := range []struct {
		name, from string
		args       []string
	}{
		{"published", programs.Published, simulate},
		{"plugin", programs.Published, append(simulate, with...)},
		{"build", "", append([]string{"build", "--branch", release, "--binary", filepath.Join(b.TempDir(), "s")}, with...)},
		{"compiled", programs.Build, simulate},
	} {
		b.Run(side.name, func(b *testing.B) {
			cmd := newUser(b, site, cmp.Or(side.from, programs.Published), run.Program(b), side.args...)
			_, seconds := measure(b, cmd)
			b.ReportMetric(seconds, "s")
		})
	}
}

// newUser returns a command with empty caches and the mirror.
func newUser(b *testing.B, site *published.Site, from, program string, args ...string) *exec.Cmd {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GOCACHE="+b.TempDir(), "PMK_SCHED_CACHE="+b.TempDir(), "PMK_SCHED_PROGRAMS="+from,
		"PMK_SCHED_KUBERNETES_REGISTRY="+site.Registry, "PMK_SCHED_KUBERNETES_DOWNLOADS="+site.Downloads)
	return cmd
}

// measure runs a command and returns how long it took.
func measure(b *testing.B, cmd *exec.Cmd) (result run.Result, seconds float64) {
	b.Helper()
	begin := time.Now()
	result = run.Command(b, cmd).OK(b)
	b.Logf("%s", result)
	return result, time.Since(begin).Seconds()
}
