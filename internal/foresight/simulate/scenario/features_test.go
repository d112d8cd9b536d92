package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

func TestDeviceGatesFollowFromFields(t *testing.T) {
	const all = "DynamicResourceAllocation"
	for _, tc := range []struct {
		kind, spec string
		want       []string
	}{
		{"Pod", `{"tolerations":[{"key":"a"}]}`, nil},
		{"ResourceSlice", `{}`, []string{all}},
		{"DeviceClass", `{"extendedResourceName":"example.com/gpu"}`, []string{"DRAExtendedResource", all}},
		{"ResourceSlice", `{"devices":[{"name":"a","capacity":{"memory":{"value":"1Gi"}}},{"consumesCounters":[{}]}]}`,
			[]string{"DRAPartitionableDevices", all}},
		{"ResourceSlice", `{"devices":[{"taints":[]},{"bindsToNode":false},{"allowMultipleAllocations":null}]}`, []string{all}},
		// Drivers choose the names of attributes.
		{"ResourceSlice", `{"devices":[{"attributes":{"taints":{"string":"a"},"x":{"adminAccess":true}}}]}`, []string{all}},
		{"ResourceSlice", `{"devices":[{"bindingConditions":["a"]}]}`,
			[]string{"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", all}},
		{"DeviceTaintRule", `{"taint":{"key":"a"}}`, []string{"DRADeviceTaintRules", all}},
		{"ResourceClaim", `{"devices":{"requests":[{"exactly":{"adminAccess":true,"tolerations":[{}]}}]}}`,
			[]string{"DRAAdminAccess", "DRADeviceTaints", all}},
		{"ResourceClaim", `{"devices":{"requests":[{"capacity":{"requests":{"memory":"1Gi"}}}]}}`,
			[]string{"DRAConsumableCapacity", all}},
		{"ResourceClaimTemplate", `{"spec":{"devices":{"requests":[{"capacity":{"requests":{"memory":"1Gi"}}}]}}}`,
			[]string{"DRAConsumableCapacity", all}},
		{"ResourceClaimTemplate", `{"spec":{"devices":{"requests":[{"firstAvailable":[{"name":"a"}]}]}}}`,
			[]string{"DRAPrioritizedList", all}},
	} {
		got := scenario.DeviceGates(kindNamed(t, tc.kind), decode(t, `{"spec":`+tc.spec+`}`))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s %s: %s", tc.kind, tc.spec, diff)
		}
	}
	want := []string{"DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes", "DRADeviceBindingConditions",
		"DRADeviceCompatibilityGroups", "DRADeviceTaintRules", "DRADeviceTaints", "DRAExtendedResource",
		"DRANodeAllocatableResources", "DRAOptionalNodeOperations", "DRAPartitionableDevices", "DRAPrioritizedList",
		"DRAResourceClaimDeviceStatus", all}
	if diff := cmp.Diff(want, scenario.AllDeviceGates()); diff != "" {
		t.Error(diff)
	}
}
