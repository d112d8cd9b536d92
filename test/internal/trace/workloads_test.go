package trace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

func TestWorkloadsAreThePodListsOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PMK_SCHED_OPENB", dir)
	for name, text := range map[string]string{
		"openb_pod_list_gpuspec33.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time\n" +
			"pod-1,1000,1,1,460,P100|V100M32,LS,Running,0\npod-0,1000,1,0,0,,LS,Running,0\n",
		"openb_pod_list_multigpu20.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-0,1000,1,8,1000\n",
		"openb_node_list_gpu_node.csv":  "sn,cpu_milli,memory_mib,gpu,model\nnode-0,1000,1,2,P100\n",
		"fgd_authors_allocated.csv":     "workload\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type pod struct {
		Name, Models string
		GPU          int64
	}
	got := map[string][]pod{}
	for _, w := range trace.Workloads(t) {
		for _, p := range w.Pods(t) {
			got[w.Name] = append(got[w.Name], pod{p.Name, strings.Join(trace.Models(p), " "), trace.Request(p)})
		}
	}
	want := map[string][]pod{
		"gpuspec33":  {{"pod-1", "P100 V100M32", 460}, {"pod-0", "", 0}},
		"multigpu20": {{"pod-0", "", 8000}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	nodes := trace.GPUNodes(t)
	if len(nodes) != 1 {
		t.Fatalf("got %d nodes, want 1", len(nodes))
	}
	room := nodes[0].Status.Allocatable
	if gpu := room.Name(trace.GPU, "").Value(); gpu != 2000 || room.Pods().Value() != 1001 {
		t.Errorf("got room for %d thousandths of GPUs and %d pods, want 2000 and 1001", gpu, room.Pods().Value())
	}
}
