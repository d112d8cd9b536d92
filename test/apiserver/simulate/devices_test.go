//go:build linux

package simulate

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// A release without dynamic resource allocation schedules pods without their devices. The result
// says so.
func TestDevicesThatAReleaseDoesNotHaveAreReported(t *testing.T) {
	t.Parallel()
	r := simulated(t, scenario.Pending(), node("one", 4, "", "")+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one-gpu}
spec: {driver: gpu.example.com, nodeName: one, pool: {name: one, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
`+pod("web", "1", "", "resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]", ""), pack.Scheduler{})
	equal(t, "placements", map[string]string{"web": "one"}, nodesOf(r))
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{apiserver.Release + " has no dynamic resource allocation as in the snapshot: 1 pod ",
		"1 resourceslices.resource.k8s.io are not loaded"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q, want %q", r.Notes, want)
		}
	}
	if len(r.Devices) > 0 {
		t.Errorf("devices %+v", r.Devices)
	}
}
