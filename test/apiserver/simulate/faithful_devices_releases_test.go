//go:build linux && releases

package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Pods with claims go to the same nodes in a simulation and for real, and get the same devices. The
// claims are made, reserved and released by the release's own controller; the test is the driver
// that publishes slices. Some pods run and have devices already, one of them has ended.
func TestSimulationsOfDevicesAgreeWithRealSchedulers(t *testing.T) {
	t.Parallel()
	for _, name := range deviceReleases {
		release, err := versions.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { devicesAgree(t, release) })
	}
}

func devicesAgree(t *testing.T, release versions.Release) {
	const nodes = 4
	w := newWorld(t, release.String(), deviceCluster(nodes, release.Gates()["DRAPartitionableDevices"].Default))
	var names []string
	for i := range nodes {
		names = append(names, shopNode(i))
	}
	f := faithful{configuration: controlplane.WithoutTies(release, names, "", "")}
	w.startClaimController(t)
	scheduler := f.scheduler(t, w)
	scheduler.Start()
	w.createPods(t, 0, "run-0", "run-1", "run-2", "run-3")
	w.awaitDevicePods(t, "run-0", "run-1", "run-2", "run-3")
	w.endDevicePod(t, "run-1")
	scheduler.Stop()

	pending := w.createPods(t, 100, "gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "two-0", "two-1", "large-0",
		"shared-0", "shared-1", "plain-0")
	w.awaitClaims(t, pending)
	simulated, devices := w.simulateDevices(t, f.configuration)
	nodesBefore := map[string]string{}
	for _, p := range simulated.Placements {
		nodesBefore[p.Name] = p.Node
	}
	placed, unplaced := len(simulated.Placements), len(simulated.Unplaced)
	if placed < 8 || unplaced == 0 || placed+unplaced != len(pending) {
		t.Fatalf("placements %v, unplaced %v: want some of both", simulated.Placements, simulated.Unplaced)
	}
	scheduler.Start()
	w.awaitDecided(t, pending, nodesBefore)
	real := map[string]string{}
	list, err := w.Kube.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if slices.Contains(pending, pod.Name) && pod.Spec.NodeName != "" {
			real[pod.Name] = pod.Spec.NodeName
		}
	}
	if diff := cmp.Diff(nodesBefore, real); diff != "" {
		t.Errorf("nodes of the pods (-simulated +real):\n%s", diff)
	}
	if diff := cmp.Diff(devices, allocatedDevices(t, w.Kube)); diff != "" {
		t.Errorf("devices of the claims (-simulated +real):\n%s", diff)
	}
	checkPools(t, simulated, devices)
}

// checkPools checks that the report counts the devices of the claims.
func checkPools(t *testing.T, r report.Report, devices map[string]string) {
	t.Helper()
	allocated, all := 0, map[string]bool{}
	for _, list := range devices {
		for _, device := range strings.Fields(list) {
			all[device] = true
		}
	}
	for _, p := range r.Devices {
		allocated += p.After.Allocated
		if p.Before.Devices != p.After.Devices || p.After.Allocated+p.After.Free > p.After.Devices {
			t.Errorf("pool %+v", p)
		}
	}
	equal(t, "allocated devices in the report", len(all), allocated)
}

// deviceCluster has nodes with two or three GPUs each, two of them large, and partitions of
// another device if the release has them.
func deviceCluster(nodes int, partitions bool) string {
	var all strings.Builder
	all.WriteString(shopNamespace + deviceClass + claimTemplate)
	all.WriteString(strings.NewReplacer("one-gpu", "two-gpus", "count: 1", "count: 2").Replace(claimTemplate))
	const large = `selectors: [{cel: {expression: 'device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'}}], allocationMode`
	all.WriteString(strings.NewReplacer("one-gpu", "large-gpu", "allocationMode", large).Replace(claimTemplate))
	fmt.Fprintf(&all, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"+
		"metadata: {name: shared, namespace: shop}\nspec: %s\n", oneGPU)
	for priority := range 120 {
		if priority < 20 || priority >= 100 {
			fmt.Fprintf(&all, "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p-%d}\n"+
				"value: %d\npreemptionPolicy: Never\n", priority, 1000-priority)
		}
	}
	for i := range nodes {
		name := shopNode(i)
		all.WriteString(readyNode(name, zoneLabel+": a", "", `cpu: "8", memory: 16Gi, pods: "110"`, ""))
		var devices []string
		for d := range 2 + i%2 {
			memory := "40Gi"
			if i == 3 && d < 2 {
				memory = "80Gi"
			}
			devices = append(devices, fmt.Sprintf("{name: gpu-%d, capacity: {memory: {value: %s}}}", d, memory))
		}
		slice(&all, name, "gpu.example.com", 1, "devices: ["+strings.Join(devices, ", ")+"]")
	}
	if partitions {
		const half = "{name: half-%d, consumesCounters: [{counterSet: whole, counters: {memory: {value: %dGi}}}], " +
			"capacity: {memory: {value: %dGi}}}"
		name := shopNode(1)
		slice(&all, name, "parts.example.com", 2, "sharedCounters: [{name: whole, counters: {memory: {value: 40Gi}}}]")
		slice(&all, name, "parts.example.com", 2, "devices: ["+fmt.Sprintf(half, 0, 20, 20)+", "+
			fmt.Sprintf(half, 1, 20, 20)+", "+fmt.Sprintf(half, 2, 40, 40)+"]")
	}
	return strings.Replace(all.String(), `device.driver == "gpu.example.com"`,
		`device.driver == "gpu.example.com" || device.driver == "parts.example.com"`, 1) // of the class
}

// slice writes a slice of a node's pool, which has several.
func slice(all *strings.Builder, node, driver string, count int, content string) {
	fmt.Fprintf(all, `---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-%[2]s-%[5]d}
spec: {driver: %[2]s, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: %[3]d}, %[4]s}
`, node, driver, count, content, all.Len())
}

// createPods creates pods with the claims that their names say, in the order of their priorities,
// of which the first is given.
func (w *world) createPods(t *testing.T, priority int, names ...string) []string {
	t.Helper()
	for i, name := range names {
		claim := map[string]string{
			"run": "resourceClaimTemplateName: one-gpu", "gpu": "resourceClaimTemplateName: one-gpu",
			"two": "resourceClaimTemplateName: two-gpus", "large": "resourceClaimTemplateName: large-gpu",
			"shared": "resourceClaimName: shared",
		}[strings.Split(name, "-")[0]]
		spec := fmt.Sprintf("priorityClassName: p-%d", priority+i)
		if claim != "" {
			spec += "\nresourceClaims: [{name: gpu, " + claim + "}]"
		}
		for _, o := range decodeManifests(t, pod(name, "500m", "", spec, "")) {
			delete(o.Object, "status")
			w.create(t.Context(), t, o)
		}
	}
	return names
}

// startClaimController starts the controllers that make, release and delete claims.
func (w *world) startClaimController(t *testing.T) {
	t.Helper()
	program, err := apiserver.Build(t.Context(), w.Release, "kube-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	controlplane.NewProcess(t, program, "--kubeconfig="+w.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=resourceclaim-controller,garbage-collector-controller").Start()
}

// awaitDevicePods waits until pods have nodes.
func (w *world) awaitDevicePods(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		run.Eventually(t, name+" has a node", func(ctx context.Context) (bool, string) {
			pod, err := w.Kube.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Spec.NodeName != "", fmt.Sprint(err, pod.Status.Conditions)
		})
	}
}

// endDevicePod deletes a pod and waits until its claim is gone.
func (w *world) endDevicePod(t *testing.T, name string) {
	t.Helper()
	now := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now}
	if err := w.Kube.CoreV1().Pods("shop").Delete(t.Context(), name, options); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the claim of "+name+" is gone", func(ctx context.Context) (bool, string) {
		claims := allocatedDevices(t, w.Kube)
		return claims[name] == "", fmt.Sprint(claims)
	})
}

// awaitClaims waits until the controller has made the claims of pods.
func (w *world) awaitClaims(t *testing.T, names []string) {
	t.Helper()
	run.Eventually(t, "the pods have claims", func(ctx context.Context) (bool, string) {
		for _, name := range names {
			pod, err := w.Kube.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			for _, c := range pod.Spec.ResourceClaims {
				if c.ResourceClaimTemplateName != nil && len(pod.Status.ResourceClaimStatuses) == 0 {
					return false, name
				}
			}
		}
		return true, ""
	})
}

// awaitDecided waits until the scheduler has decided about pods; want are the nodes that it has to
// find.
func (w *world) awaitDecided(t *testing.T, names []string, want map[string]string) {
	t.Helper()
	run.Eventually(t, "the scheduler has decided about all pods", func(ctx context.Context) (bool, string) {
		for _, name := range names {
			pod, err := w.Kube.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			if node, ok := decided(pod); node == "" && (!ok || want[name] != "") {
				return false, fmt.Sprint(name, pod.Status.Conditions)
			}
		}
		return true, ""
	})
}

// simulateDevices simulates the pending pods of a snapshot of the world, and returns the devices of
// the claims too.
func (w *world) simulateDevices(t *testing.T, configuration string) (r report.Report, devices map[string]string) {
	t.Helper()
	objects, err := capture.OpenFile(w.snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	withSimulator(t, w.Release.String(), func(sim *simulator) error {
		o := sim.options(t, objects, pack.Scheduler{Configuration: profiles.Request{
			Source: []byte(configurationHead(w.Release) + configuration), SourceName: "scheduler.yaml"}})
		o.Scenario = scenario.Pending()
		o.Observer = whenScheduled{do: func(_ context.Context, cfg *rest.Config) error {
			kube, err := kubernetes.NewForConfig(cfg)
			devices = allocatedDevices(t, kube)
			return err
		}}
		result, err := sim.server.Run(t.Context(), o)
		if err == nil {
			r = *result
		}
		return err
	})
	return r, devices
}

// allocatedDevices returns the devices of the allocated claims, by the name of the pod that owns a
// claim, or of a claim that none owns.
func allocatedDevices(t *testing.T, kube kubernetes.Interface) map[string]string {
	t.Helper()
	list, err := kube.ResourceV1().ResourceClaims("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	devices := map[string]string{}
	for _, claim := range list.Items {
		name := claim.Name
		if len(claim.OwnerReferences) > 0 {
			name = claim.OwnerReferences[0].Name
		}
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			devices[name] += result.Driver + "/" + result.Pool + "/" + result.Device + " "
		}
		if len(claim.Status.ReservedFor) == 0 {
			devices[name] += "unreserved "
		}
	}
	return devices
}
