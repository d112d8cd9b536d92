package preflight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestUsesHostPort(t *testing.T) {
	cases := map[string]struct {
		hostNetwork bool
		container   corev1.Container
		want        bool
	}{
		"host port": {false, corev1.Container{Ports: []corev1.ContainerPort{{HostPort: 10260}}}, true},
		"container port": {false, corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 10260}}},
			false},
		"flag in the host's network": {true, corev1.Container{Args: []string{"--secure-port=10260"}}, true},
		"flag in the pod's network":  {false, corev1.Container{Args: []string{"--secure-port=10260"}}, false},
		"another flag":               {true, corev1.Container{Args: []string{"--leader-elect=10260", "10260"}}, false},
		"another port": {true, corev1.Container{Command: []string{"kube-scheduler", "--secure-port=10259"}},
			false},
		"insecure port of old releases": {true, corev1.Container{Command: []string{"kube-scheduler", "-port=10260"}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: tc.hostNetwork, Containers: []corev1.Container{tc.container}}}
			if got := usesHostPort(pod, 10260); got != tc.want {
				t.Errorf("uses it: %t", got)
			}
		})
	}
}
