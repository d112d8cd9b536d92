//go:build linux

package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The unmeasured pods of a scheduler_perf workload are scheduled first. The measured pods fit only
// if they evict the unmeasured ones.
func TestWorkloadOfSchedulerPerfIsMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config/low.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: low-}\nspec: {priority: 0, containers: " +
			"[{name: pause, image: pause, resources: {requests: {cpu: 2}}}]}\n",
		"config/high.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: high-}\nspec: {priority: 10, containers: " +
			"[{name: pause, image: pause, resources: {requests: {cpu: 3}}}]}\n",
		"config/performance.yaml": `- name: Preemption
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createPods, countParam: $low, podTemplatePath: config/low.yaml}
  - {opcode: createPods, countParam: $high, podTemplatePath: high.yaml, collectMetrics: true}
  workloads:
  - {name: small, params: {nodes: 4, low: 8, high: 4}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "config", "performance.yaml")
	result := run.PMKSched(t, "bench", "--workload", file, "--case", "Preemption/small", "--samples", "1", "--branch",
		apiserver.Release, "-o", "json").OK(t)
	r := run.Decode[bench.Result](t, result.Stdout)
	equal(t, "workload", "Preemption/small", r.Workload)
	equal(t, "nodes, pods and unbound pods", [3]int{4, 4, 0},
		[3]int{r.Nodes, r.Pods, r.This.Unbound + r.Against[0].Unbound})
	if r.This.Rate <= 0 {
		t.Errorf("rate %v: %+v, %+v", r.This.Rate, r.This, r.Against)
	}
	run.PMKSched(t, "bench", "--workload", file, "--branch", apiserver.Release).Fails(t, 2, "--case is required",
		"Preemption/small")
}
