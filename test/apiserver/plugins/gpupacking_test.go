//go:build linux

package plugins

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
)

const gpuMilli corev1.ResourceName = "example.com/gpu-milli"

const (
	gpuIndex = "example.com/gpu-index"
	noGPU    = "no GPU has enough free"
)

// startGPUs starts a scheduler with the plugin and adds nodes with two GPUs each.
func startGPUs(t *testing.T, s subject, name string, nodes int) *cluster {
	t.Helper()
	x := s.start(t, name, profiles.Plugin{Name: gpupacking.Name, Weight: 10, Args: []byte(
		`{resource: example.com/gpu-milli, devices: {units: 1000}, annotations: {index: example.com/gpu-index}}`)},
		gpupacking.Rules)
	for i := range nodes {
		x.node(t, strconv.Itoa(i), amounts{gpuMilli: "2000"}, nil)
	}
	return x
}

// device returns the node and the devices of a pod, when it is bound.
func (x *cluster) device(t *testing.T, name string) string {
	t.Helper()
	return x.nodeOf(t, name) + " " + x.get(t, name).Annotations[gpuIndex]
}

func sharesOfGPUs(t *testing.T, s subject) {
	x := startGPUs(t, s, "shares", 2)
	var devices []string
	for i := range 4 {
		name := fmt.Sprintf("share-%d", i)
		x.create(t, x.pod(name, amounts{gpuMilli: "600"}))
		devices = append(devices, x.device(t, name))
	}
	slices.Sort(devices)
	if want := []string{"0 0", "0 1", "1 0", "1 1"}; !slices.Equal(devices, want) {
		t.Fatalf("devices %q, want %q", devices, want)
	}
	// On each node 800 are free, on no device more than 400.
	x.create(t, x.pod("half", amounts{gpuMilli: "500"}))
	x.awaitRejected(t, "half", noGPU)
	x.create(t, x.pod("rest", amounts{gpuMilli: "400"}))
	x.awaitBound(t, "rest")
	freed := x.device(t, "share-3")
	x.wakes(t, "the pod with a share of a GPU is deleted", func() { x.remove(t, "share-3") }, "half")
	if got := x.device(t, "half"); got != freed {
		t.Errorf("the pod is on %q, want %q", got, freed)
	}
}
