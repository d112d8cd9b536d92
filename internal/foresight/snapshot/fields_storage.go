package snapshot

// storageKinds are read by VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.
func storageKinds() []*Kind {
	const group = "storage.k8s.io"
	return []*Kind{
		{
			Group: group, Resource: "storageclasses", Name: "StorageClass", Versions: []string{"v1"},
			// Parameters are read by the provisioner alone.
			fields: reads(fields{
				"provisioner": plain, "volumeBindingMode": plain, "reclaimPolicy": plain,
				"allowedTopologies.matchLabelExpressions": requirements,
			}),
			annotations: map[string]treatment{
				"storageclass.kubernetes.io/is-default-class":      plain,
				"storageclass.beta.kubernetes.io/is-default-class": plain,
			},
		},
		{
			Group: group, Resource: "csidrivers", Name: "CSIDriver", Versions: []string{"v1"},
			fields: reads(fields{"spec.storageCapacity": plain, "spec.attachRequired": plain,
				"spec.preventPodSchedulingIfMissing": plain}).keepName(),
		},
		{
			Group: group, Resource: "csinodes", Name: "CSINode", Versions: []string{"v1"},
			fields: reads(fields{"spec.drivers.name": plain, "spec.drivers.topologyKeys": key,
				"spec.drivers.allocatable": plain}),
			annotations: map[string]treatment{"storage.alpha.kubernetes.io/migrated-plugins": plain},
		},
		{
			Resource: "persistentvolumeclaims", Name: "PersistentVolumeClaim", Versions: []string{"v1"}, Namespaced: true,
			fields: reads(fields{
				"spec.accessModes": plain, "spec.resources": plain, "spec.storageClassName": name, "spec.volumeName": name,
				"spec.volumeMode": plain,
				"spec.selector":   selector, "spec.volumeAttributesClassName": name,
				"status.phase": plain, "status.accessModes": plain, "status.capacity": plain,
				"status.currentVolumeAttributesClassName": name,
			}),
			annotations: map[string]treatment{
				"volume.kubernetes.io/selected-node":            name,
				"pv.kubernetes.io/bind-completed":               plain,
				"pv.kubernetes.io/bound-by-controller":          plain,
				"volume.beta.kubernetes.io/storage-class":       name,
				"volume.kubernetes.io/storage-provisioner":      plain,
				"volume.beta.kubernetes.io/storage-provisioner": plain,
			},
		},
		{
			Resource: "persistentvolumes", Name: "PersistentVolume", Versions: []string{"v1"},
			fields: reads(persistentVolumeFields()),
			annotations: map[string]treatment{
				"pv.kubernetes.io/bound-by-controller":    plain,
				"pv.kubernetes.io/provisioned-by":         plain,
				"volume.beta.kubernetes.io/storage-class": name,
			},
		},
		{
			Group: group, Resource: "csistoragecapacities", Name: "CSIStorageCapacity", Versions: []string{"v1",
				"v1beta1"}, Namespaced: true,
			fields: reads(fields{"nodeTopology": selector, "storageClassName": name, "capacity": plain,
				"maximumVolumeSize": plain}),
		},
		{
			// Counted by NodeVolumeLimits from 1.32 on.
			Group: group, Resource: "volumeattachments", Name: "VolumeAttachment", Versions: []string{"v1"},
			fields: reads(fields{
				"spec.attacher": plain, "spec.nodeName": name, "spec.source.persistentVolumeName": name, "status.attached": plain,
			}),
		},
	}
}

// persistentVolumeFields includes the fields in volume sources that NodeVolumeLimits counts
// (k8s.io/csi-translation-lib), but no field that gives access to the volume.
func persistentVolumeFields() fields {
	return fields{
		"spec.capacity": plain, "spec.accessModes": plain, "spec.storageClassName": name, "spec.volumeMode": plain,
		"spec.volumeAttributesClassName": name, "spec.persistentVolumeReclaimPolicy": plain,
		"spec.claimRef.apiVersion": plain, "spec.claimRef.kind": plain, "spec.claimRef.namespace": name,
		"spec.claimRef.name": name, "spec.claimRef.uid": uid,

		"spec.csi.driver": plain, "spec.csi.volumeHandle": name, "spec.csi.readOnly": plain,
		"spec.gcePersistentDisk.pdName": name, "spec.awsElasticBlockStore.volumeID": name, "spec.azureDisk.diskName": name,
		"spec.azureDisk.diskURI": name, "spec.cinder.volumeID": name, "spec.vsphereVolume.volumePath": name,

		"status.phase": plain,
	}.with("spec.nodeAffinity.required", nodeSelectorFields())
}

// keepName makes an Anonymizer keep the objects' name, which is a driver's name.
func (t *tree) keepName() *tree {
	t.at("metadata.name").treatment = plain
	return t
}
