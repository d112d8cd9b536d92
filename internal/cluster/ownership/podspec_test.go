package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// The restricted level of the Pod Security Standards demands all fields except for the read-only
// root file system.
func TestConfinedPodsMeetTheRestrictedLevel(t *testing.T) {
	want := &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	if diff := cmp.Diff(want, ownership.Confined()); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	pod := &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(7)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if diff := cmp.Diff(pod, ownership.ConfinedAs(7)); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}
