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
		"host port":                     {false, corev1.Container{Ports: []corev1.ContainerPort{{HostPort: 10260}}}, true},
		"container port":                {false, corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 10260}}}, false},
		"flag in the host's network":    {true, corev1.Container{Args: []string{"--secure-port=10260"}}, true},
		"flag in the pod's network":     {false, corev1.Container{Args: []string{"--secure-port=10260"}}, false},
		"another flag":                  {true, corev1.Container{Args: []string{"--leader-elect=10260", "10260"}}, false},
		"another port":                  {true, corev1.Container{Command: []string{"kube-scheduler", "--secure-port=10259"}}, false},
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

func TestNodeSelector(t *testing.T) {
	affinity := func(requirements ...corev1.NodeSelectorRequirement) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}},
		}}}
	}
	master := corev1.NodeSelectorRequirement{Key: "master", Operator: corev1.NodeSelectorOpExists}
	cases := map[string]struct {
		pod  corev1.PodSpec
		want string
	}{
		"any node":         {corev1.PodSpec{}, ""},
		"a label":          {corev1.PodSpec{NodeSelector: map[string]string{"master": ""}}, "master="},
		"affinity":         {corev1.PodSpec{Affinity: affinity(master)}, "master"},
		"a value":          {corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}})}, "a in (b)"},
		"both":             {corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}, Affinity: affinity(master)}, "a=b,master"},
		"anti-affinity":    {corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}}, ""},
		"no term required": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := nodeSelector(&tc.pod)
			if err != nil || got.String() != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
