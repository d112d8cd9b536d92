package matrix

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

func someJob() Job {
	return Job{
		Name: "pmk-sched-matrix-abc", Namespace: "simulations", Image: "registry.example.com/matrix:v1@sha256:1234",
		Command: []string{"/usr/local/bin/pmk-sched", "simulate-cell"},
		Cells:   6, Parallel: 4, Node: "worker-1", Arch: "amd64", Memory: 1 << 30, Timeout: 40 * time.Minute, PerIndex: true,
	}
}

func TestJob(t *testing.T) {
	got, err := yaml.Marshal(someJob().object())
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "job.yaml")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(run with -update if this is meant) (-want +got):\n%s", diff)
	}
}

// A release without backoffLimitPerIndex would end all simulations when the pods of one have failed
// often enough.
func TestJobOfAnOldReleaseDoesNotEndBecauseOfOneSimulation(t *testing.T) {
	j := someJob()
	j.PerIndex, j.Node, j.Parallel = false, "", 100
	s := j.object().Spec
	if s.BackoffLimitPerIndex != nil || s.BackoffLimit == nil || *s.BackoffLimit != math.MaxInt32 {
		t.Errorf("limits %v, %v", s.BackoffLimitPerIndex, s.BackoffLimit)
	}
	if *s.Parallelism != 6 || s.Template.Spec.Affinity != nil || s.Template.Spec.Tolerations != nil {
		t.Errorf("parallelism %d, pods on %v, %v", *s.Parallelism, s.Template.Spec.Affinity, s.Template.Spec.Tolerations)
	}
}
