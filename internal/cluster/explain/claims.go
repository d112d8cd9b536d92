package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Claim is a claim for one of the pod's volumes.
type Claim struct {
	Name string
	// Claim is nil if it does not exist; Volume is nil if the claim is not bound, or if its volume
	// does not exist.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Unread is set if the volume could not be read.
	Unread bool
	// Event is the last warning about the claim.
	Event string
}

// Annotations and labels on volumes.
const (
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
	// noProvisioner is the provisioner for classes whose volumes are created by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
)

// claimFindings describes problems with the claims for the pod's volumes.
func claimFindings(in Input) []Finding {
	var findings []Finding
	for _, c := range in.Claims {
		if f := c.finding(in); f != nil {
			f.By = "VolumeBinding"
			if c.Event != "" {
				f.Text += " (" + c.Event + ")"
			}
			findings = append(findings, *f)
		}
	}
	return findings
}

func (c Claim) finding(in Input) *Finding {
	who := "claim " + in.Namespace + "/" + c.Name
	switch {
	case c.Claim == nil:
		return &Finding{Cause: MissingClaim, Text: who + " does not exist",
			Fix: "create PersistentVolumeClaim " + in.Namespace + "/" + c.Name}
	case c.Claim.DeletionTimestamp != nil:
		return &Finding{Cause: MissingClaim, Text: who + " is being deleted", Fix: "create it again when it is deleted"}
	case c.Claim.Spec.VolumeName != "" && c.Volume == nil && !c.Unread:
		return &Finding{Cause: MissingPV,
			Text: fmt.Sprintf("%s is bound to PersistentVolume %s, which does not exist", who, c.Claim.Spec.VolumeName),
			Fix:  "restore the volume, or delete the claim and create it again"}
	case c.Claim.Spec.VolumeName != "":
		return nil
	}
	return c.unbound(in, who)
}

// unbound describes a claim without a volume.
func (c Claim) unbound(in Input, who string) *Finding {
	name := c.class()
	if name == "" {
		f := &Finding{Cause: UnboundClaim, Text: who + " is not bound, and has no StorageClass that provisions a volume"}
		f.Fix = "create a PersistentVolume that matches it, or create it again with a StorageClass"
		if c.Claim.Spec.StorageClassName == nil && !slices.ContainsFunc(in.Classes, isDefault) {
			f.Text, f.Fix = who+" is not bound: it names no StorageClass, and none is the default",
				"name a StorageClass in the claim, or make one the default"
		}
		return f
	}
	at := slices.IndexFunc(in.Classes, func(s storagev1.StorageClass) bool { return s.Name == name })
	if at < 0 {
		create := fmt.Sprintf("create StorageClass %s, or create the claim again with one of the cluster's: %s", name,
			list(classNames(in.Classes)))
		if len(in.Classes) == 0 {
			create = "create StorageClass " + name
		}
		return &Finding{Cause: MissingClass, Text: fmt.Sprintf("%s is not bound: StorageClass %s does not exist", who, name),
			Fix: create}
	}
	class := in.Classes[at]
	if class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		if class.Provisioner == noProvisioner {
			return &Finding{Cause: NoVolume,
				Text: fmt.Sprintf("%s needs a PersistentVolume of StorageClass %s on the pod's node", who, name),
				Fix:  "create a PersistentVolume of that class and size on a node that has room for the pod"}
		}
		return nil // it is bound when the pod has a node
	}
	fix := "look at the events of the claim, and whether provisioner " + class.Provisioner + " runs"
	if class.Provisioner == noProvisioner {
		fix = "create a PersistentVolume of StorageClass " + name + " that matches it"
	}
	return &Finding{Cause: UnboundClaim, Text: fmt.Sprintf("%s is not bound: no volume of StorageClass %s", who, name),
		Fix: fix}
}

// class returns the claim's StorageClass name.
func (c Claim) class() string {
	if name, ok := c.Claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	if c.Claim.Spec.StorageClassName != nil {
		return *c.Claim.Spec.StorageClassName
	}
	return ""
}

func isDefault(s storagev1.StorageClass) bool {
	return s.Annotations[defaultClass] == "true" || s.Annotations[betaDefaultClass] == "true"
}

func classNames(classes []storagev1.StorageClass) []string {
	var names []string
	for _, c := range classes {
		names = append(names, c.Name)
	}
	return names
}

// where describes on which nodes the volumes for the pod's claims are reachable.
func where(in Input) string {
	var parts []string
	for _, c := range in.Claims {
		if c.Volume == nil {
			continue
		}
		for _, key := range zoneLabels() {
			if zone := c.Volume.Labels[key]; zone != "" {
				parts = append(parts, fmt.Sprintf("volume %s of claim %s is in %s=%s", c.Volume.Name, c.Name, key,
					strings.ReplaceAll(zone, "__", ",")))
			}
		}
		if a := c.Volume.Spec.NodeAffinity; a != nil && a.Required != nil {
			parts = append(parts, fmt.Sprintf("volume %s of claim %s requires %s", c.Volume.Name, c.Name,
				selectorText(a.Required)))
		}
	}
	return strings.Join(parts, "; ")
}

// zoneLabels are the volume labels that plugin VolumeZone compares with node labels.
func zoneLabels() []string {
	return []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion}
}
