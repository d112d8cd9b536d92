package snapshot_test

import (
	"encoding/json"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	componentresource "k8s.io/component-helpers/resource"
	"sigs.k8s.io/randfill"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// A pod with anything in any field is the same to a scheduler before and after it is stripped.
func TestStrippedPodIsTheSameToAScheduler(t *testing.T) {
	const pods = 300
	seed := time.Now().UnixNano()
	fill := filler(seed)
	for range pods {
		var pod corev1.Pod
		fill.Fill(&pod)
		addReadConditions(&pod)
		text, err := json.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		object, err := snapshot.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		object["apiVersion"], object["kind"] = "v1", "Pod"
		_, kept := strip(t, object)
		got := decodePod(t, kept)
		// Compared as JSON reads them back: nil and empty lists are the same.
		want := decodePod(t, object)
		schedulingFields(want)
		if !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("seed %d: a scheduler sees another pod (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
		o := componentresource.PodResourcesOptions{UseStatusResources: true,
			InPlacePodLevelResourcesVerticalScalingEnabled: true}
		before, after := componentresource.PodRequests(decodePod(t, object), o), componentresource.PodRequests(got, o)
		if !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("seed %d: the requests differ: %v, %v", seed, before, after)
		}
	}
}

// filler fills values at random. Quantities, times and some others have constraints.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1<<40), resource.BinarySI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(1<<31), 0) },
		func(v *intstr.IntOrString, _ randfill.Continue) { *v = intstr.FromInt32(1) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString("{}") },
		func(s *string, c randfill.Continue) { *s = []string{"", "a", "b", "c/d", "e.f"}[c.Intn(5)] },
	)
}

// addReadConditions adds the conditions that schedulers read, since random ones are others.
func addReadConditions(pod *corev1.Pod) {
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget,
		corev1.PodResizePending} {
		if rand.Intn(2) == 0 {
			pod.Status.Conditions = append(pod.Status.Conditions,
				corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, Reason: "Because", Message: "x"})
		}
	}
}

func decodePod(t *testing.T, object map[string]any) *corev1.Pod {
	t.Helper()
	text, err := snapshot.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// schedulingFields clears the fields of a pod that no scheduler reads. It is written against the
// types, apart from the paths in the package.
func schedulingFields(pod *corev1.Pod) {
	m := &pod.ObjectMeta
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, Labels: m.Labels,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
	for i := range pod.OwnerReferences {
		pod.OwnerReferences[i].BlockOwnerDeletion = nil
	}
	schedulingSpec(&pod.Spec)
	schedulingStatus(&pod.Status)
}

func schedulingSpec(s *corev1.PodSpec) {
	s.EphemeralContainers, s.RestartPolicy, s.TerminationGracePeriodSeconds, s.ActiveDeadlineSeconds, s.DNSPolicy = nil,
		"", nil, nil, ""
	s.ServiceAccountName, s.DeprecatedServiceAccount, s.AutomountServiceAccountToken = "", "", nil
	s.HostPID, s.HostIPC, s.ShareProcessNamespace, s.SecurityContext, s.ImagePullSecrets = false, false, nil, nil, nil
	s.Hostname, s.Subdomain, s.HostAliases, s.DNSConfig, s.ReadinessGates = "", "", nil, nil, nil
	s.EnableServiceLinks, s.SetHostnameAsFQDN, s.OS, s.HostnameOverride = nil, nil, nil, nil
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i, c := range list {
			list[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
				RestartPolicyRules: c.RestartPolicyRules, Ports: c.Ports}
			for j := range c.Ports {
				c.Ports[j].Name = ""
			}
		}
	}
	var volumes []corev1.Volume
	for i := range s.Volumes {
		if v := schedulingVolume(&s.Volumes[i]); v.VolumeSource != (corev1.VolumeSource{}) {
			volumes = append(volumes, v)
		}
	}
	s.Volumes = volumes
}

func schedulingVolume(v *corev1.Volume) corev1.Volume {
	kept := corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: v.PersistentVolumeClaim}}
	if e := v.Ephemeral; e != nil {
		kept.Ephemeral = &corev1.EphemeralVolumeSource{}
		if t := e.VolumeClaimTemplate; t != nil {
			kept.Ephemeral.VolumeClaimTemplate = &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: t.Spec.AccessModes, Resources: t.Spec.Resources, StorageClassName: t.Spec.StorageClassName,
				VolumeMode: t.Spec.VolumeMode,
			}}
		}
	}
	if s := v.CSI; s != nil {
		kept.CSI = &corev1.CSIVolumeSource{Driver: s.Driver, ReadOnly: s.ReadOnly}
	}
	if s := v.GCEPersistentDisk; s != nil {
		kept.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: s.PDName, ReadOnly: s.ReadOnly}
	}
	if s := v.AWSElasticBlockStore; s != nil {
		kept.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: s.VolumeID, ReadOnly: s.ReadOnly}
	}
	if s := v.AzureDisk; s != nil {
		kept.AzureDisk = &corev1.AzureDiskVolumeSource{DiskName: s.DiskName, DataDiskURI: s.DataDiskURI}
	}
	if s := v.Cinder; s != nil {
		kept.Cinder = &corev1.CinderVolumeSource{VolumeID: s.VolumeID}
	}
	if s := v.VsphereVolume; s != nil {
		kept.VsphereVolume = &corev1.VsphereVirtualDiskVolumeSource{VolumePath: s.VolumePath}
	}
	if s := v.RBD; s != nil {
		kept.RBD = &corev1.RBDVolumeSource{CephMonitors: s.CephMonitors, RBDImage: s.RBDImage, RBDPool: s.RBDPool,
			ReadOnly: s.ReadOnly}
	}
	if s := v.ISCSI; s != nil {
		kept.ISCSI = &corev1.ISCSIVolumeSource{IQN: s.IQN, Lun: s.Lun, ReadOnly: s.ReadOnly}
	}
	return kept
}

func schedulingStatus(s *corev1.PodStatus) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return c.Type != corev1.PodScheduled && c.Type != corev1.DisruptionTarget && c.Type != corev1.PodResizePending &&
			c.Type != corev1.PodResizeInProgress
	})
	for i, c := range s.Conditions {
		s.Conditions[i] = corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
	}
	for _, list := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i, c := range list {
			list[i] = corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources, Resources: c.Resources}
		}
	}
	s.ObservedGeneration, s.Message, s.Reason, s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = 0, "", "", "", nil, "", nil
	s.EphemeralContainerStatuses, s.QOSClass = nil, ""
}
