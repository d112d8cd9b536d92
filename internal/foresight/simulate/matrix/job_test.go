package matrix

import (
	"math"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func someJob() Job {
	return Job{
		Name: "pmk-sched-matrix-abc", Namespace: "simulations", Image: "registry.example.com/matrix:v1@sha256:1234",
		Command: []string{"/usr/local/bin/pmk-sched", "simulate-cell"}, List: "H4sI",
		Cells: 6, Parallel: 4, Node: "worker-1", Arch: "amd64", Memory: 1 << 30, Timeout: 40 * time.Minute, PerIndex: true,
	}
}

func TestJob(t *testing.T) {
	got, err := yaml.Marshal(someJob().object())
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/job.yaml", got)
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
