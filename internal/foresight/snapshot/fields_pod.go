package snapshot

// podFields are the pod fields that schedulers from 1.20 to 1.37 read: framework.NewPodInfo and
// calculateResource (pkg/scheduler/framework/types.go), the default plugins, and preemption.
func podFields() fields {
	f := fields{
		"spec.nodeName": name, "spec.schedulerName": plain,
		"spec.priority": plain, "spec.priorityClassName": name, "spec.preemptionPolicy": plain,
		"spec.nodeSelector": labels, "spec.affinity": whole, "spec.tolerations": taints,
		"spec.topologySpreadConstraints": whole,
		"spec.overhead":                  plain, "spec.resources": plain, "spec.hostNetwork": plain, "spec.hostUsers": plain,
		"spec.runtimeClassName":     name, // by which the API server sets the overhead of a new pod
		"spec.schedulingGates.name": name,
		// 1.36 and later; 1.35 has workloadRef.
		"spec.schedulingGroup": whole, "spec.schedulingGroup.podGroupName": name,
		"spec.workloadRef": whole, "spec.workloadRef.name": name, "spec.workloadRef.podGroup": name,
		"spec.workloadRef.podGroupReplicaKey": name,

		"status.phase": plain, "status.nominatedNodeName": name,
		// A preemption's victims are compared by their age.
		"status.startTime":       plain,
		"status.conditions.type": plain, "status.conditions.status": plain, "status.conditions.reason": plain,
		// Pods whose resources are changed in place.
		"status.resize": plain, "status.allocatedResources": plain, "status.resources": plain,
		"status.resourceClaimStatuses.name": name, "status.resourceClaimStatuses.resourceClaimName": name,
		"status.extendedResourceClaimStatus.resourceClaimName":             name,
		"status.extendedResourceClaimStatus.requestMappings.containerName": name,
		"status.extendedResourceClaimStatus.requestMappings.resourceName":  plain,
		"status.extendedResourceClaimStatus.requestMappings.requestName":   name,

		"status.nodeAllocatableResourceClaimStatuses.resourceClaimName": name,
		"status.nodeAllocatableResourceClaimStatuses.containers":        name,
		"status.nodeAllocatableResourceClaimStatuses.resources":         plain, // 1.36
		"status.nodeAllocatableResourceClaimStatuses.mapping":           plain, // 1.37
		"status.nodeAllocatableResourceClaimStatuses.overhead":          plain,
	}
	for _, list := range []string{"spec.containers", "spec.initContainers"} {
		f = f.with(list, containerFields())
	}
	for _, list := range []string{"status.containerStatuses", "status.initContainerStatuses"} {
		f = f.with(list, fields{"name": name, "allocatedResources": plain, "resources": plain})
	}
	f = f.with("spec.affinity", affinityFields())
	f = f.with("spec.topologySpreadConstraints", fields{
		"maxSkew": plain, "topologyKey": key, "whenUnsatisfiable": plain, "labelSelector": selector, "minDomains": plain,
		"nodeAffinityPolicy": plain, "nodeTaintsPolicy": plain, "matchLabelKeys": key,
	})
	f = f.with("spec.resourceClaims", fields{
		"name": name, "resourceClaimName": name, "resourceClaimTemplateName": name,
		"source.resourceClaimName": name, "source.resourceClaimTemplateName": name, // up to 1.30
	})
	return f.with("spec.volumes", volumeFields())
}

// containerFields are a container's fields. An init container's restart policy makes it a sidecar.
// From restart rules, mount options, hostUsers and hostNetwork the plugin NodeDeclaredFeatures
// infers which features a node needs (1.36 and later, InferForScheduling in
// k8s.io/component-helpers/nodedeclaredfeatures/features).
func containerFields() fields {
	return fields{
		"name": name, "image": image, "restartPolicy": plain,
		"resources.requests": plain, "resources.limits": plain, "resources.claims.name": name,
		"resources.claims.request": name,
		"ports.containerPort":      plain, "ports.hostPort": plain, "ports.hostIP": plain, "ports.protocol": plain,
		"restartPolicyRules.action": plain, "restartPolicyRules.exitCodes.operator": plain,
		"restartPolicyRules.exitCodes.values": plain,
		"volumeMounts.name":                   name, "volumeMounts.bindMountOptions": plain, // 1.37
	}
}

func affinityFields() fields {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	f := fields{"nodeAffinity." + preferred + ".weight": plain}
	f = f.with("nodeAffinity."+required, nodeSelectorFields())
	f = f.with("nodeAffinity."+preferred+".preference", nodeTermFields())
	term := fields{
		"labelSelector": selector, "namespaceSelector": selector, "namespaces": name, "topologyKey": key,
		"matchLabelKeys": key, "mismatchLabelKeys": key,
	}
	for _, affinity := range []string{"podAffinity.", "podAntiAffinity."} {
		f[affinity+preferred+".weight"] = plain
		f = f.with(affinity+required, term).with(affinity+preferred+".podAffinityTerm", term)
	}
	return f
}

// nodeSelectorFields are the fields in a v1.NodeSelector, nodeTermFields the fields in its terms.
func nodeSelectorFields() fields { return fields{}.with("nodeSelectorTerms", nodeTermFields()) }

func nodeTermFields() fields {
	return fields{"matchExpressions": requirements, "matchFields": fieldRequirements}
}

// volumeFields are the fields in the volumes that VolumeBinding, VolumeRestrictions and
// NodeVolumeLimits read.
func volumeFields() fields {
	return fields{
		"name":                            name,
		"persistentVolumeClaim.claimName": name, "persistentVolumeClaim.readOnly": plain,
		// The claim for an ephemeral volume is named POD-VOLUME.
		"ephemeral.volumeClaimTemplate.spec.accessModes":      plain,
		"ephemeral.volumeClaimTemplate.spec.resources":        plain,
		"ephemeral.volumeClaimTemplate.spec.storageClassName": name,
		"ephemeral.volumeClaimTemplate.spec.volumeMode":       plain,

		"csi.driver": plain, "csi.readOnly": plain,
		"gcePersistentDisk.pdName": name, "gcePersistentDisk.readOnly": plain,
		"awsElasticBlockStore.volumeID": name, "awsElasticBlockStore.readOnly": plain,
		"azureDisk.diskName": name, "azureDisk.diskURI": name, "cinder.volumeID": name, "vsphereVolume.volumePath": name,
		"rbd.monitors": name, "rbd.image": name, "rbd.pool": name, "rbd.readOnly": plain,
		"iscsi.iqn": name, "iscsi.lun": plain, "iscsi.readOnly": plain,
	}
}

// isVolumeRead reports whether a volume has a source that schedulers read: ConfigMaps, Secrets,
// directories and so on are none.
func isVolumeRead(volume map[string]any) bool { return len(volume) > 1 }

// isMountRead reports whether schedulers read a volume's mount.
func isMountRead(mount map[string]any) bool { return mount["bindMountOptions"] != nil }

// isConditionRead reports whether schedulers read a pod condition: why it is pending, whether it is
// a victim of a preemption, and whether its resources are being changed.
func isConditionRead(condition map[string]any) bool {
	switch condition["type"] {
	case "PodScheduled", "DisruptionTarget", "PodResizePending", "PodResizeInProgress":
		return true
	}
	return false
}

// nodeFields are the node fields that schedulers read (framework.NodeInfo.SetNode), and the
// addresses, which the bundled plugin loadaware compares with the addresses in metrics.
func nodeFields() fields {
	return fields{
		"spec.unschedulable": plain, "spec.taints": taints,
		"status.capacity": plain, "status.allocatable": plain, "status.declaredFeatures": plain,
		"status.conditions.type": plain, "status.conditions.status": plain,
		"status.images.names": image, "status.images.sizeBytes": plain,
		"status.addresses.type": plain, "status.addresses.address": name,
	}
}
