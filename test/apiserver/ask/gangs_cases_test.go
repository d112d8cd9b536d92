//go:build linux && cases

package ask

import (
	"fmt"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// gang is a Job whose pods run together or not at all.
func gang(name, cpu string, pods int) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s}
spec:
  parallelism: %d
  completions: %[3]d
  template:
    metadata: {labels: {scheduling.x-k8s.io/pod-group: %[1]s, pmk-sched.io/min-member: "%[3]d"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: batch, resources: {requests: {cpu: %[4]s, memory: 100Mi}}}]
`, name, space, pods, cpu)
}

// All pods of a gang get a node or none, like in `simulate add`, and nothing of it is left.
func TestGangsGetNodesTogether(t *testing.T) {
	p, _, config := plane(t, apiserver.Release)
	with := []string{"--config", config, "--with", "builtin:coscheduling"}
	s := serve(t, p, with...)
	for round := range 3 {
		for _, tc := range []struct {
			cpu    string
			pods   int
			placed int
			fits   string
		}{
			{"500m", 4, 4, ask.Yes}, {"1", 6, 6, ask.Yes}, {"2", 4, 0, ask.No}, {"500m", 40, 0, ask.No},
		} {
			name := fmt.Sprintf("gang-%s-%d", tc.cpu, tc.pods)
			a := s.ask(t, gang(name, tc.cpu, tc.pods))
			placed := 0
			for _, pod := range a.Pods {
				if pod.Node != "" {
					placed++
				}
			}
			if a.Fits != tc.fits || placed != tc.placed {
				t.Errorf("round %d, %s: %s, %d of %d pods: %+v", round, name, a.Fits, placed, tc.pods, a)
			}
			t.Logf("%s: %s after %.1f s: %v", name, a.Fits, a.Seconds, a.Changes)
		}
	}
	equalsSimulation(t, p, s, gang("gang", "1", 6)+"---\n"+gang("large", "2", 4), with...)
}
