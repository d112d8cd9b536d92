package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// affinityTo returns the node affinity that requires the values of labels.
func affinityTo(pairs ...string) *corev1.VolumeNodeAffinity {
	var term corev1.NodeSelectorTerm
	for i := 0; i < len(pairs); i += 2 {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: pairs[i], Operator: corev1.NodeSelectorOpIn, Values: []string{pairs[i+1]}})
	}
	return &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
}

// A provisioner decides how a volume looks and which nodes reach it.
func TestVolumesLookAsTheirProvisionerMakesThem(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	csiNode := func(keys ...string) *storagev1.CSINode {
		return &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "other.example.com"}, {Name: "disk.example.com", TopologyKeys: keys}}}}
	}
	csi := func(driver string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "pvc-u"}}
	}
	managed := corev1.AzureManagedDisk
	directory := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/pvc-u"}}
	cases := map[string]struct {
		p        provisioning
		by       string
		mode     corev1.PersistentVolumeAccessMode
		topology []string // of the class
		source   corev1.PersistentVolumeSource
		affinity *corev1.VolumeNodeAffinity
		assumed  bool
		refused  bool
	}{
		"a CSI driver": {by: "disk.example.com", p: provisioning{csiNode: csiNode(zone)},
			source: csi("disk.example.com"), affinity: affinityTo(zone, "z")},
		"a CSI driver without topology": {by: "disk.example.com", p: provisioning{csiNode: csiNode()},
			source: csi("disk.example.com")},
		"a CSI driver whose label the node lacks": {by: "disk.example.com", p: provisioning{csiNode: csiNode("rack")},
			refused: true},
		"directories of the node": {by: "rancher.io/local-path", source: directory, affinity: affinityTo(host, "a")},
		"an in-tree disk": {by: "kubernetes.io/aws-ebs", affinity: affinityTo(zone, "z"),
			source: corev1.PersistentVolumeSource{
				AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "pvc-u"}}},
		"an Azure disk of a node without availability zone": {by: "kubernetes.io/azure-disk",
			source: corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "pvc-u",
				DataDiskURI: "/subscriptions/pvc-u", Kind: &managed}}},
		"an in-tree file system": {by: "kubernetes.io/azure-file", source: directory},
		"an unknown provisioner": {by: "example.com/disks", source: directory, affinity: affinityTo(host, "a"),
			assumed: true},
		"an unknown provisioner that could be a driver": {by: "local.example.com", source: directory,
			affinity: affinityTo(host, "a"), assumed: true},
		"an unknown provisioner, for many nodes": {by: "example.com/nfs", mode: corev1.ReadWriteMany, source: directory,
			assumed: true},
		"a driver that no node has": {by: "disk.example.com", p: provisioning{isDriver: true}, source: csi("disk.example.com"),
			affinity: affinityTo(host, "a"), assumed: true},
		"topologies of the class": {by: "example.com/disks", topology: []string{zone}, source: directory,
			affinity: affinityTo(zone, "z")},
		"as another volume of the class": {by: "example.com/disks", source: directory, affinity: affinityTo(zone, "z"),
			p: provisioning{sample: &corev1.PersistentVolume{
				Spec: corev1.PersistentVolumeSpec{NodeAffinity: affinityTo(zone, "other")}}}},
		"as another volume of the class, that all nodes reach": {by: "example.com/disks", source: csi("made.example.com"),
			p: provisioning{sample: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: csi("made.example.com")}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.p
			p.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{zone: "z", host: "a"}}}
			p.class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Provisioner: tc.by}
			for _, key := range tc.topology {
				p.class.AllowedTopologies = append(p.class.AllowedTopologies, corev1.TopologySelectorTerm{
					MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: []string{"z"}}}})
			}
			mode := tc.mode
			if mode == "" {
				mode = corev1.ReadWriteOnce
			}
			p.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "u"},
				Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
			pv, assumed, err := p.volume()
			if isRefusal(err) != tc.refused || (err != nil) != tc.refused || assumed != tc.assumed {
				t.Fatalf("assumed %t, %v", assumed, err)
			}
			if tc.refused {
				return
			}
			if diff := cmp.Diff(tc.source, pv.Spec.PersistentVolumeSource); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.affinity, pv.Spec.NodeAffinity); diff != "" {
				t.Errorf("node affinity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVolumesOfAnotherProvisionerShowNothing(t *testing.T) {
	volume := func(name, class, by string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: class}}
		if by != "" {
			pv.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": by}
		}
		return pv
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "example.com/disks"}
	all := []*corev1.PersistentVolume{volume("a", "fast", "example.com/former"), volume("b", "slow", "example.com/disks"),
		volume("d", "fast", ""), volume("c", "fast", "example.com/disks")}
	if got := sampleOf(class, all); got == nil || got.Name != "c" {
		t.Errorf("got %v", got)
	}
	assumed := volume("e", "fast", "example.com/disks")
	assumed.Annotations[assumedTopology] = "true"
	if got := sampleOf(class, append(all[:2:2], assumed)); got != nil {
		t.Errorf("got %s", got.Name)
	}
}
