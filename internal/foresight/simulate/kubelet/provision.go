package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// provisioning is a claim, the node that the scheduler has selected for it, and the objects that
// show how a volume of its class looks.
type provisioning struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	node  *corev1.Node
	// csiNode may be nil. isDriver is set if there is a CSIDriver with the provisioner's name.
	csiNode  *storagev1.CSINode
	isDriver bool
	// sample is a volume of the class, nil if there is none.
	sample *corev1.PersistentVolume
}

// refusal is an error for which a provisioner would give the claim back to the scheduler.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func isRefusal(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

// refusedByAPI marks the answer from an API server that refuses an object for its content.
func refusedByAPI(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return refusal{err}
	}
	return err
}

// volume returns the volume that the class's provisioner creates. assumed is set if nothing shows
// which nodes reach it.
func (p *provisioning) volume() (pv *corev1.PersistentVolume, assumed bool, err error) {
	name := "pvc-" + string(p.claim.UID)
	pv = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{volume.AnnDynamicallyProvisioned: p.class.Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: p.claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: p.claim.Namespace, Name: p.claim.Name, UID: p.claim.UID},
			PersistentVolumeSource: p.source(name),
			AccessModes:            p.claim.Spec.AccessModes, StorageClassName: p.class.Name,
			VolumeMode: p.claim.Spec.VolumeMode,
		},
	}
	keys, assumed, err := p.topology()
	if err != nil {
		return nil, false, err
	}
	var term corev1.NodeSelectorTerm
	for _, key := range keys {
		if value, has := p.node.Labels[key]; has {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		}
	}
	if assumed {
		pv.Annotations[assumedTopology] = "true"
	}
	if len(term.MatchExpressions) > 0 {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
	}
	return pv, assumed, nil
}

// assumedTopology is an annotation on volumes that show nothing about other volumes in their class.
const assumedTopology = "pmk-sched.io/assumed-topology"

// inTree is the name prefix for the provisioners in Kubernetes. External provisioners have other
// names with a slash, and are not CSI drivers.
const inTree = "kubernetes.io/"

// source returns a volume's source. Cloud disks are the in-tree sources that NodeVolumeLimits
// counts, whether or not a CSI driver has taken over their provisioner (k8s.io/csi-translation-lib,
// TranslateCSIPVToInTree).
func (p *provisioning) source(name string) corev1.PersistentVolumeSource {
	switch p.class.Provisioner {
	case inTree + "aws-ebs":
		return corev1.PersistentVolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: name}}
	case inTree + "gce-pd":
		return corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name}}
	case inTree + "azure-disk":
		managed := corev1.AzureManagedDisk
		return corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: name,
			DataDiskURI: "/subscriptions/" + name, Kind: &managed}}
	case inTree + "cinder":
		return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: name}}
	case inTree + "vsphere-volume":
		return corev1.PersistentVolumeSource{
			VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: name}}
	}
	driver := ""
	switch {
	case p.sample != nil && p.sample.Spec.CSI != nil:
		driver = p.sample.Spec.CSI.Driver
	case p.isDriver || p.driver() != nil:
		driver = p.class.Provisioner
	}
	if driver != "" {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}
	}
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/" + name}} // no scheduler reads it
}

// driver returns the class's CSI driver on the node, or nil.
func (p *provisioning) driver() *storagev1.CSINodeDriver {
	if p.csiNode == nil {
		return nil
	}
	for i := range p.csiNode.Spec.Drivers {
		if d := &p.csiNode.Spec.Drivers[i]; d.Name == p.class.Provisioner {
			return d
		}
	}
	return nil
}

// topology returns the label keys for which each node that reaches the volume must have the node's
// values.
func (p *provisioning) topology() (keys []string, assumed bool, err error) {
	if driver := p.driver(); driver != nil {
		for _, key := range driver.TopologyKeys {
			if _, has := p.node.Labels[key]; !has {
				return nil, false, refusal{fmt.Errorf("node %s has no label %s, which driver %s of StorageClass %s needs",
					p.node.Name, key, driver.Name, p.class.Name)}
			}
		}
		return driver.TopologyKeys, false, nil
	}
	if p.sample != nil {
		return affinityKeys(p.sample.Spec.NodeAffinity), false, nil
	}
	zones := []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion}
	switch p.class.Provisioner {
	case inTree + "azure-disk":
		// The zone of a node without availability zone is its fault domain, a number.
		if zone := p.node.Labels[corev1.LabelTopologyZone]; !strings.Contains(zone, "-") {
			return nil, false, nil
		}
		return zones, false, nil
	case inTree + "aws-ebs", inTree + "gce-pd", inTree + "cinder", inTree + "vsphere-volume":
		return zones, false, nil
	case "rancher.io/local-path", "openebs.io/local", "microk8s.io/hostpath": // directories of the node
		return []string{corev1.LabelHostname}, false, nil
	}
	if strings.HasPrefix(p.class.Provisioner, inTree) {
		return nil, false, nil
	}
	for _, term := range p.class.AllowedTopologies {
		for _, e := range term.MatchLabelExpressions {
			keys = append(keys, e.Key)
		}
	}
	if len(keys) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(keys))), false, nil
	}
	// A class waits for a pod if its volumes are not reached by all nodes.
	if slices.ContainsFunc(p.claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
	}) {
		return nil, true, nil
	}
	return []string{corev1.LabelHostname}, true, nil
}

// affinityKeys returns the label keys in a volume's node affinity.
func affinityKeys(affinity *corev1.VolumeNodeAffinity) (keys []string) {
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			keys = append(keys, e.Key)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(keys)))
}

// sampleOf returns a volume that a class's provisioner has made, nil if there is none.
func sampleOf(class *storagev1.StorageClass, volumes []*corev1.PersistentVolume) *corev1.PersistentVolume {
	var found []*corev1.PersistentVolume
	for _, pv := range volumes {
		by := pv.Annotations[volume.AnnDynamicallyProvisioned]
		if pv.Spec.StorageClassName == class.Name && (by == "" || by == class.Provisioner) &&
			pv.Annotations[assumedTopology] == "" {
			found = append(found, pv)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
}
