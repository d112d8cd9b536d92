package scenario

import (
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// The feature gates for dynamic resource allocation (pkg/features/kube_features.go).
const gateDevices = "DynamicResourceAllocation"

// deviceGates are the gates without which the API server drops a field, by the field's name in an
// object's specification.
func deviceGates() map[string]string {
	return map[string]string{
		"sharedCounters": "DRAPartitionableDevices", "consumesCounters": "DRAPartitionableDevices",
		"perDeviceNodeSelection":   "DRAPartitionableDevices",
		"allowMultipleAllocations": "DRAConsumableCapacity", "requestPolicy": "DRAConsumableCapacity",
		"distinctAttribute": "DRAConsumableCapacity",
		"bindingConditions": "DRADeviceBindingConditions", "bindsToNode": "DRADeviceBindingConditions",
		"taints": "DRADeviceTaints", "tolerations": "DRADeviceTaints",
		"firstAvailable": "DRAPrioritizedList", "adminAccess": "DRAAdminAccess",
		"extendedResourceName":            "DRAExtendedResource",
		"nodeAllocatableResourceMappings": "DRANodeAllocatableResources",
		"nodeAllocatableResources":        "DRANodeAllocatableResources",
		"derivedAttributes":               "DRADerivedAttributes", "compatibilityGroups": "DRADeviceCompatibilityGroups",
		"skipNodeOperations": "DRAOptionalNodeOperations",
	}
}

// AllDeviceGates returns the feature gates that [DeviceGates] may return, sorted.
func AllDeviceGates() []string {
	all := []string{gateDevices, "DRADeviceTaintRules", "DRAResourceClaimDeviceStatus"}
	all = append(all, slices.Collect(maps.Values(deviceGates()))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// DeviceGates returns the feature gates that an object needs because of its fields.
func DeviceGates(kind *snapshot.Kind, o map[string]any) []string {
	if kind.Group != "resource.k8s.io" {
		return nil
	}
	found := map[string]bool{gateDevices: true}
	findGates(o["spec"], deviceGates(), found)
	if kind.Name == "DeviceTaintRule" {
		found["DRADeviceTaintRules"] = true
	}
	if found["DRADeviceBindingConditions"] {
		found["DRAResourceClaimDeviceStatus"] = true
	}
	isClaim := kind.Name == "ResourceClaim" || kind.Name == "ResourceClaimTemplate"
	if isClaim && hasField(o["spec"], "capacity") { // of a request: devices have one without the gate
		found["DRAConsumableCapacity"] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// findGates adds the gates for the fields in a value. Drivers choose the attribute names.
func findGates(value any, gates map[string]string, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			findGates(element, gates, found)
		}
	case object:
		for field, inner := range v {
			if gate := gates[field]; gate != "" && !isEmpty(inner) {
				found[gate] = true
			}
			if field != "attributes" {
				findGates(inner, gates, found)
			}
		}
	}
}

// hasField reports whether a value has a field somewhere.
func hasField(value any, field string) bool {
	found := map[string]bool{}
	findGates(value, map[string]string{field: field}, found)
	return found[field]
}

func isEmpty(value any) bool {
	if elements, ok := value.([]any); ok {
		return len(elements) == 0
	}
	return value == nil || value == false
}
