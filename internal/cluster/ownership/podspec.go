package ownership

import corev1 "k8s.io/api/core/v1"

// Confined returns the security context for a container without privileges and with a read-only
// root file system.
func Confined() *corev1.SecurityContext {
	no, yes := false, true
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// ConfinedAs returns the security context for a pod whose containers run as a user who is not root.
func ConfinedAs(user int64) *corev1.PodSecurityContext {
	yes := true
	return &corev1.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// EmptyDir returns an empty volume.
func EmptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}
