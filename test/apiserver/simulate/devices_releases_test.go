//go:build linux && releases

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// deviceReleases serve resource.k8s.io/v1 by default.
var deviceReleases = []string{"v1.34.2", "v1.36.3", "v1.37.1"}

const (
	deviceClass = `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
`
	// oneGPU is the specification of a claim for one device.
	oneGPU = `{devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}`
	// claimTemplate is the template of the claims.
	claimTemplate = `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: shop}
spec: {spec: ` + oneGPU + `}
`
	fromTemplate = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]"
)

// gpuNode returns a node with devices, which are called gpu-0 and so on.
func gpuNode(name string, devices int) string {
	var list []string
	for i := range devices {
		list = append(list, fmt.Sprintf("{name: gpu-%d}", i))
	}
	return node(name, 16, "", "") + fmt.Sprintf(`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-gpu}
spec:
  driver: gpu.example.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices: [%[2]s]
`, name, strings.Join(list, ", "))
}

// gpuPod returns a pod with its claim, as the controller has made it from the template. A pod with
// a node has a device of it. number makes the UIDs.
func gpuPod(name string, number int, node, device string) string {
	uid := fmt.Sprintf("33333333-0000-0000-0000-%012d", number)
	spec, phase, status := fromTemplate, "Pending", ""
	if node != "" {
		spec, phase = spec+"\nnodeName: "+node, "Running"
		status = fmt.Sprintf(`
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: %[1]s, device: %[2]s}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%[1]s]}]}]}
  reservedFor: [{resource: pods, name: %[3]s, uid: %[4]s}]`, node, device, name, uid)
	}
	return pod(name, "1", "uid: "+uid, spec, fmt.Sprintf(
		"phase: %s, resourceClaimStatuses: [{name: gpu, resourceClaimName: %s-gpu-x}]", phase, name)) + fmt.Sprintf(`---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: %[1]s-gpu-x
  namespace: shop
  uid: 44444444-0000-0000-0000-%012[2]d
  ownerReferences: [{apiVersion: v1, kind: Pod, name: %[1]s, uid: %[3]s, controller: true}]
spec: %[4]s%[5]s
`, name, number, uid, oneGPU, status)
}

// noDevice is the reason of a pod for which a node has no device left
// (pkg/scheduler/framework/plugins/dynamicresources).
const noDevice = "cannot allocate all claims"

// checkDevices checks where pods went, and that the others found no device.
func checkDevices(t *testing.T, r report.Report, placed map[string]int, without int) {
	t.Helper()
	got := map[string]int{}
	for _, p := range r.Placements {
		got[p.Node]++
	}
	equal(t, "placed pods by node", placed, got)
	equal(t, "pods without a device", without, len(r.Unplaced))
	for _, u := range r.Unplaced {
		if !strings.Contains(u.Reason, noDevice) {
			t.Errorf("%s: reason %q, want %q", u.Name, u.Reason, noDevice)
		}
	}
	for _, note := range r.Notes {
		if !strings.HasPrefix(note, "devices: ") && !strings.Contains(note, "left out") {
			t.Errorf("note %q", note)
		}
	}
}

// Pods with claims from a template get devices until none is left: pending pods of the snapshot,
// added ones, and running ones whose node is drained, which give their devices back.
func TestDevicesOfClaimsFromTemplatesAreCounted(t *testing.T) {
	t.Parallel()
	cluster := deviceClass + gpuNode("three", 3) + node("none", 16, "", "") + gpuPod("running", 1, "three", "gpu-1")
	added, err := scenario.Add(readManifests(t, claimTemplate+deployment("train", 3, requesting("cpu: 1"), fromTemplate)),
		1, scenario.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		scenario  scenario.Scenario
		manifests string
		placed    map[string]int
		without   int
	}{
		"pending": {scenario.Pending(),
			cluster + gpuPod("a", 2, "", "") + gpuPod("b", 3, "", "") + gpuPod("c", 4, "", ""), map[string]int{"three": 2}, 1},
		"added": {added, cluster, map[string]int{"three": 2}, 1},
		"drained": {scenario.Drain([]string{"three"}),
			cluster + gpuPod("also-running", 2, "three", "gpu-0") + gpuNode("one", 1), map[string]int{"one": 1}, 1},
	} {
		for _, release := range deviceReleases {
			t.Run(name+" "+release, func(t *testing.T) {
				checkDevices(t, simulatedAt(t, release, tc.scenario, tc.manifests, pack.Scheduler{}), tc.placed, tc.without)
			})
		}
	}
}

// `explain --exact` reports which node has no device left, and that the other nodes have none.
func TestPodWithoutADeviceIsExplained(t *testing.T) {
	t.Parallel()
	cluster := deviceClass + gpuNode("one", 1) + node("none", 16, "", "") + gpuPod("running", 1, "one", "gpu-0") +
		gpuPod("web", 2, "", "")
	for _, release := range deviceReleases {
		t.Run(release, func(t *testing.T) {
			r := explained(t, cluster, release, "", pack.Scheduler{})
			equal(t, "refused nodes", map[string][]string{"one": {"DynamicResources"}, "none": {"DynamicResources"}}, refused(r))
			if r.Node != "" || !strings.Contains(r.Message, noDevice) || len(r.Refusals) != 1 ||
				!strings.Contains(strings.Join(r.Refusals[0].Reasons, "\n"), noDevice) {
				t.Errorf("node %q, message %q, refusals %+v, notes %q", r.Node, r.Message, r.Refusals, r.Notes)
			}
		})
	}
}

// A device with binding conditions is bound without its driver. The claim of an evicted pod is
// released.
func TestDevicesAreReadyAndReleasedWithoutDrivers(t *testing.T) {
	t.Parallel()
	conditions := strings.NewReplacer("{name: gpu-0}",
		"{name: gpu-0, bindingConditions: [example.com/attached], bindingFailureConditions: [example.com/failed]}")
	cluster := deviceClass + conditions.Replace(gpuNode("one", 1)) + gpuPod("web", 1, "", "") +
		strings.Replace(gpuPod("last", 2, "", ""), "\nspec:\n", "\nspec:\n  priority: -1\n", 1)
	const release = "v1.37.1"
	r := simulatedAt(t, release, scenario.Pending(), cluster, pack.Scheduler{})
	checkDevices(t, r, map[string]int{"one": 1}, 1)
	equal(t, "devices", []report.DevicePool{{Driver: "gpu.example.com", Pool: "one", Node: "one",
		Before: report.DeviceCount{Devices: 1, Free: 1}, After: report.DeviceCount{Devices: 1, Allocated: 1}}}, r.Devices)
	added, err := scenario.Add(readManifests(t, claimTemplate+deployment("train", 1, requesting("cpu: 16"),
		fromTemplate+"\npriority: 10")), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	evicting := simulatedAt(t, release, added, deviceClass+gpuNode("one", 2)+gpuPod("running", 1, "one", "gpu-0"),
		pack.Scheduler{})
	if len(evicting.Evicted) != 1 || len(evicting.Placements) != 1 || evicting.Devices[0].After.Allocated != 1 {
		t.Errorf("evicted %v, unplaced %v, devices %+v", evicting.Evicted, evicting.Unplaced, evicting.Devices)
	}
}
