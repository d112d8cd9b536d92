//go:build linux

// Package policies measures how long policy tests of a large cluster take.
package policies

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

const (
	nodes, bound, pending = 1_000, 4_500, 500
	// other is the second release.
	other = "v1.29.2"
	// most is how long two releases may take on two cores.
	most = 60 * time.Second
)

const policy = `apiVersion: pmk-sched.io/v1alpha1
kind: SchedulingTest
expect:
- {name: all pods have nodes, pod: "*/*", node: "*"}
- {name: nothing waits for CPU, pod: "*/*", pending: Insufficient cpu, count: 0}
- {name: nothing is evicted, pod: "*/*", evicted: false}
- {name: what runs stays, pod: default/app-*, moved: false}
- {name: no team evicts another, pod: default/*, evicts: "*/*", count: 0}
- {name: an app is spread over nodes, labels: {app: app-0001}, spread: {over: node, atLeast: 5, each: 1}}
- {name: an app is in several zones, labels: {app: app-0002}, spread: {over: zone, atLeast: 1}}
- {name: room for peaks, utilization: {resource: cpu, of: p99, below: 0.9}}
- {name: the requests of an app, labels: {app: app-0003}, requests: {resource: memory, below: 8Gi}}
- {name: ten copies fit, steps: [{scenario: add, files: [train.yaml], count: 10, limit: 1}], copies: {atLeast: 10}}
`

const train = `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 4
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: train, resources: {requests: {cpu: "8"}}}]}
`

// BenchmarkPolicies tests ten expectations at two releases, whose programs are compiled before.
func BenchmarkPolicies(b *testing.B) {
	dir := b.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			b.Fatal(err)
		}
		return file
	}
	write("train.yaml", []byte(train))
	cluster, err := largecluster.List(nodes, bound, pending)
	if err != nil {
		b.Fatal(err)
	}
	args := []string{"test", "--snapshot", write("cluster.json", cluster), "--branch", apiserver.Release,
		"--branch", other, "-o", "json", write("policy.yaml", []byte(policy))}
	small := write("node.yaml", []byte("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"))
	run.PMKSched(b, "simulate", "pending", "--snapshot", small, "--branch", other).OK(b)
	longest := time.Duration(0)
	for b.Loop() {
		begin := time.Now()
		r := run.PMKSched(b, args...)
		total := time.Since(begin)
		longest = max(longest, total)
		b.Logf("%s\n%s", total, r.OK(b).Stderr)
		for _, x := range run.Decode[struct{ Runs []policytest.Result }](b, r.Stdout).Runs {
			b.Logf("%s: %.1f s, %d expectations", x.Release, x.Seconds, len(x.Expectations))
		}
		if total > most {
			b.Errorf("it took %s, want at most %s", total, most)
		}
	}
	b.ReportMetric(longest.Seconds(), "total-s")
}
