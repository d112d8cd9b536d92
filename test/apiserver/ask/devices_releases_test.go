//go:build linux && releases

package ask

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// devices gives each of the first four nodes two devices.
func devices(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	_, err := p.Kube.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		node := fmt.Sprint("node-", i)
		_, err := p.Kube.ResourceV1().ResourceSlices().Create(t.Context(), &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{{Name: "first"}, {Name: "second"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// withDevices is a Job whose pods have a device each.
func withDevices(name string, pods int) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: %s}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
---
`, space) + job(name, "100m", "100Mi", pods, "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]")
}

// Pods of a question get free devices, which are free again after the answer.
func TestPodsGetFreeDevices(t *testing.T) {
	for _, release := range []string{"v1.34.2", "v1.37.1"} {
		t.Run(release, func(t *testing.T) {
			p, log, config := plane(t, release)
			devices(t, p)
			s := serve(t, p, "--config", config)
			for round := range 3 {
				if a := s.ask(t, withDevices("six", 6)); a.Fits != ask.Yes {
					t.Errorf("round %d: six of eight devices: %+v", round, a)
				}
				a := s.ask(t, withDevices("ten", 10))
				placed, used := 0, map[string]int{}
				for _, pod := range a.Pods {
					if pod.Node != "" {
						placed++
						used[pod.Node]++
					}
				}
				if a.Fits != ask.No || placed != 8 || len(used) != 4 || len(a.Changes) == 0 || a.Changes[0].Kind != "count" {
					t.Errorf("round %d: ten of eight devices: %+v", round, a)
				}
			}
			old := run.WriteFile(t, "old.yaml",
				strings.Replace(withDevices("old", 1), "resource.k8s.io/v1", "resource.k8s.io/v1beta1", 1))
			run.PMKSched(t, "ask", "-m", old, "--address", "unix:"+s.socket).Fails(t, 2, "the scheduler reads resource.k8s.io/v1")
			equalsSimulation(t, p, s, withDevices("both", 5)+"---\n"+job("small", "500m", "200Mi", 3, ""), "--config", config)
			s.stop(t)
			onlyReads(t, log)
		})
	}
}
