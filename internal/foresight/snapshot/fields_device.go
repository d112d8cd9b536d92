package snapshot

// PodClaimAnnotation on a ResourceClaim that was made from a template is the claim's name in its
// pod's specification (PodResourceClaimAnnotation in k8s.io/api/resource/v1).
const PodClaimAnnotation = "resource.kubernetes.io/pod-claim-name"

// deviceKinds are read by DynamicResources from 1.31 on. An Anonymizer keeps drivers, attributes
// and capacities of devices, since expressions refer to them. Configuration that only drivers read
// (config) is dropped.
func deviceKinds() []*Kind {
	const group = "resource.k8s.io"
	versions := []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}
	return []*Kind{
		{
			Group: group, Resource: "deviceclasses", Name: "DeviceClass", Versions: versions,
			fields: reads(fields{
				"spec.selectors": plain, "spec.extendedResourceName": plain,
				"spec.suitableNodes": whole, // v1alpha3 of 1.31
			}.with("spec.suitableNodes", nodeSelectorFields())).keepName(),
		},
		{
			Group: group, Resource: "resourceslices", Name: "ResourceSlice", Versions: versions, fields: reads(sliceFields()),
		},
		{
			Group: group, Resource: "devicetaintrules", Name: "DeviceTaintRule", Versions: versions,
			fields: reads(fields{
				"spec": whole, "spec.deviceSelector.deviceClassName": plain, "spec.deviceSelector.driver": plain,
				"spec.deviceSelector.pool":   name,
				"spec.deviceSelector.device": name, "spec.deviceSelector.selectors": plain, "spec.taint": taints,
			}),
		},
		{
			// Schedulers do not read templates; a controller makes the pods' claims from them.
			Group: group, Resource: "resourceclaimtemplates", Name: "ResourceClaimTemplate", Versions: versions,
			Namespaced: true, fields: reads(fields{"spec.metadata.labels": labels}.with("spec.spec", claimSpecFields())),
		},
		{
			Group: group, Resource: "resourceclaims", Name: "ResourceClaim", Versions: versions, Namespaced: true,
			fields: reads(claimFields()),
			annotations: map[string]treatment{
				"resource.kubernetes.io/extended-resource-claim": plain, PodClaimAnnotation: name,
			},
		},
	}
}

func sliceFields() fields {
	f := fields{
		"spec": whole, "spec.driver": plain, "spec.pool.name": name, "spec.pool.generation": plain,
		"spec.pool.resourceSliceCount": plain,
		"spec.nodeName":                name, "spec.allNodes": plain, "spec.perDeviceNodeSelection": plain,
		"spec.sharedCounters": plain, "spec.skipNodeOperations": plain, // 1.37
	}.with("spec.nodeSelector", nodeSelectorFields())
	device := fields{
		"attributes": plain, "capacity": plain, "consumesCounters": plain, "nodeName": name, "allNodes": plain,
		"bindsToNode":       plain,
		"bindingConditions": plain, "bindingFailureConditions": plain, "allowMultipleAllocations": plain,
		"nodeAllocatableResourceMappings": plain, // 1.36
		"nodeAllocatableResources":        plain, // 1.37
		"taints":                          taints,
	}.with("nodeSelector", nodeSelectorFields())
	f["spec.devices.name"] = name
	return f.with("spec.devices", device).with("spec.devices.basic", device) // basic up to v1beta1
}

// claimSpecFields are the fields in a claim's specification.
func claimSpecFields() fields {
	request := fields{
		"name": name, "deviceClassName": plain, "selectors": plain, "allocationMode": plain, "count": plain,
		"adminAccess": plain, "capacity": plain, "tolerations": taints, "derivedAttributes": plain, // 1.37
	}
	// Up to v1beta1 a request's fields are its own, later they are in "exactly".
	return fields{
		"devices.requests": whole, "devices.constraints": whole,
		"devices.constraints.requests": requestName, "devices.constraints.matchAttribute": plain,
		"devices.constraints.distinctAttribute": plain,
	}.with("devices.requests", request).with("devices.requests.exactly",
		request).with("devices.requests.firstAvailable", request)
}

func claimFields() fields {
	f := fields{
		"status.allocation.devices.results":            whole,
		"status.allocation.allocationTimestamp":        plain,
		"status.reservedFor":                           whole,
		"status.reservedFor.apiGroup":                  plain,
		"status.reservedFor.resource":                  plain,
		"status.reservedFor.name":                      name,
		"status.reservedFor.uid":                       uid,
		"status.devices.driver":                        plain,
		"status.devices.pool":                          name,
		"status.devices.device":                        name,
		"status.devices.shareID":                       uid,
		"status.devices.conditions.type":               plain,
		"status.devices.conditions.status":             plain,
		"status.devices.conditions.reason":             plain,
		"status.devices.conditions.lastTransitionTime": plain,
	}
	f = f.with("spec", claimSpecFields()).with("status.allocation.nodeSelector", nodeSelectorFields())
	// A request's name may be followed by a slash and an alternative's name.
	return f.with("status.allocation.devices.results", fields{
		"request": requestName, "driver": plain, "pool": name, "device": name, "adminAccess": plain, "shareID": uid,
		"consumedCapacity": plain, "skipNodeOperations": plain,
		"bindingConditions": plain, "bindingFailureConditions": plain, "tolerations": taints,
	})
}

// groupKinds are the pod groups that are scheduled together: Workload from 1.35, PodGroup from
// 1.36, CompositePodGroup from 1.37.
func groupKinds() []*Kind {
	const group = "scheduling.k8s.io"
	versions := []string{"v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"}
	template := fields{
		"name": name, "policy": plain, "schedulingPolicy": plain, "disruptionMode": plain, "priority": plain,
		"priorityClassName":                  name,
		"schedulingConstraints.topology.key": key,
		"resourceClaims.name":                name, "resourceClaims.resourceClaimName": name,
		"resourceClaims.resourceClaimTemplateName": name,
	}
	pods := template.with("podGroupTemplateRef.workload", fields{"workloadName": name, "podGroupTemplateName": name})
	workload := fields{"controllerRef": owners, "controllerRef.apiGroup": plain, "controllerRef.kind": plain,
		"controllerRef.name": name}.
		with("podGroups", template).with("podGroupTemplates", template)
	kind := func(resource, kindName string, spec fields) *Kind {
		return &Kind{
			Group: group, Resource: resource, Name: kindName, Versions: versions, Namespaced: true,
			fields: reads(fields{
				"spec": whole, "status.conditions.type": plain, "status.conditions.status": plain,
				"status.conditions.reason":          plain,
				"status.resourceClaimStatuses.name": name, "status.resourceClaimStatuses.resourceClaimName": name,
			}.with("spec", spec)),
		}
	}
	return []*Kind{
		kind("workloads", "Workload", workload), kind("podgroups", "PodGroup", pods), kind("compositepodgroups",
			"CompositePodGroup", pods),
	}
}
