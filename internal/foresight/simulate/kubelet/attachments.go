package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// detach removes the attachments of an ending pod's volumes, as the attach/detach controller does.
// NodeVolumeLimits counts them from 1.32 on.
func (v *volumes) detach(ctx context.Context, pod *corev1.Pod) error {
	attached, err := v.attachedFor(pod)
	if err != nil || len(attached) == 0 {
		return err
	}
	on := fields.OneTermEqualSelector("spec.nodeName", pod.Spec.NodeName).String()
	others, err := v.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: on})
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != pod.UID {
			for _, volume := range v.volumesOf(other) {
				used[volume] = true
			}
		}
	}
	for _, a := range attached {
		if used[*a.Spec.Source.PersistentVolumeName] {
			continue
		}
		err := v.kube.StorageV1().VolumeAttachments().Delete(ctx, a.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// attachedFor returns the attachments of a pod's volumes to its node.
func (v *volumes) attachedFor(pod *corev1.Pod) ([]*storagev1.VolumeAttachment, error) {
	all, err := v.attachments.List(labels.Everything())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	own := map[string]bool{}
	for _, volume := range v.volumesOf(pod) {
		own[volume] = true
	}
	var attached []*storagev1.VolumeAttachment
	for _, a := range all {
		if name := a.Spec.Source.PersistentVolumeName; a.Spec.NodeName == pod.Spec.NodeName && name != nil && own[*name] {
			attached = append(attached, a)
		}
	}
	return attached, nil
}

// volumesOf returns the volumes for a pod's claims, by name.
func (v *volumes) volumesOf(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		volume, name := &pod.Spec.Volumes[i], ""
		switch {
		case volume.PersistentVolumeClaim != nil:
			name = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			name = pod.Name + "-" + volume.Name
		default:
			continue
		}
		if claim, err := v.claims.PersistentVolumeClaims(pod.Namespace).Get(name); err == nil && claim.Spec.VolumeName != "" {
			names = append(names, claim.Spec.VolumeName)
		}
	}
	return names
}
