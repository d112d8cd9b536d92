package gpupacking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestReserveChoosesDevicesThatAreFree(t *testing.T) {
	withCondition := func(status corev1.ConditionStatus) *corev1.Pod {
		pod := gpuPod("p", 400, "")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: status}}
		return pod
	}
	busy := plugintest.NewPod("shop", "busy", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32")})
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		on      *plugintest.Node
		status  string
		devices []int
	}{
		"the second device":        {gpuPod("p", 400, ""), gpuNode("n", 2, gpuPod("a", 700, "0")), "Success", []int{1}},
		"what is left of a device": {gpuPod("p", 300, ""), gpuNode("n", 1, gpuPod("a", 700, "0")), "Success", []int{0}},
		"all devices":              {gpuPod("p", 2000, ""), gpuNode("n", 2), "Success", []int{0, 1}},
		"the least amount":         {gpuPod("p", 1, ""), gpuNode("n", 1), "Success", []int{0}},
		"no device is free enough": {gpuPod("p", 301, ""), gpuNode("n", 1, gpuPod("a", 700, "0")),
			"Unschedulable: no GPU has enough free", nil},
		"no devices":            {gpuPod("p", 400, ""), gpuNode("n", 0), "UnschedulableAndUnresolvable: node has no GPUs to share", nil},
		"no node":               {gpuPod("p", 400, ""), gpuNode("other", 1), `Error: choose GPUs of node n: node "n" not found`, nil},
		"no GPUs are requested": {gpuPod("p", 0, ""), gpuNode("n", 2), "Success", nil},
		// The pods that were preempted may not have ended yet.
		"the CPU is used":                  {gpuPod("p", 400, ""), gpuNode("n", 1, busy), "Success", []int{0}},
		"it could not be scheduled so far": {withCondition(corev1.ConditionFalse), gpuNode("n", 1), "Success", []int{0}},
		"it is bound":                      {withCondition(corev1.ConditionTrue), gpuNode("n", 1), "Success", nil},
	} {
		g := newPlugin(t, &plugintest.Handle{NodeList: []scheduler.NodeInfo{c.on}}, args)
		status := g.Reserve(t.Context(), nil, c.pod, "n")
		if got := status.String(); got != c.status || strings.HasPrefix(got, "Error") != (status.Err() != nil) {
			t.Errorf("%s: %s, want %s", name, got, c.status)
		}
		reserved, known := g.reservationOf(c.pod.UID)
		if diff := cmp.Diff(c.devices, reserved.devices); diff != "" || known != (c.devices != nil) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An extender calls Unreserve for a pod that the API server has bound nevertheless.
func TestBoundPodsKeepTheirDevices(t *testing.T) {
	for status, kept := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false} {
		g := newPlugin(t, &plugintest.Handle{NodeList: []scheduler.NodeInfo{gpuNode("n", 1)}}, args)
		pod := gpuPod("p", 400, "")
		if got := g.Reserve(t.Context(), nil, pod, "n"); !got.IsSuccess() {
			t.Fatal(got)
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status}}
		g.Unreserve(t.Context(), nil, pod, "n")
		if reserved, known := g.reservationOf(pod.UID); known != kept {
			t.Errorf("scheduled %s: %s", status, fmt.Sprint(reserved))
		}
	}
}
