package kubeapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodOfHost(t *testing.T) {
	pod := func(name, node string, hostNetwork bool) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{NodeName: node, HostNetwork: hostNetwork}}
	}
	cases := map[string]struct {
		pods []corev1.Pod
		host string
		want string
	}{
		"pod network": {[]corev1.Pod{pod("a", "n1", false), pod("b", "n1", false)}, "b", "b"},
		"host network, machines may have the same host name": {[]corev1.Pod{pod("a", "n1", true), pod("b", "n2", true)},
			"n2", ""},
		"host network, node named by address": {[]corev1.Pod{pod("a", "10.0.0.1", true)}, "master", "a"},
		"two of them, node named by address": {[]corev1.Pod{pod("a", "10.0.0.1", true), pod("b", "10.0.0.2", true)},
			"master", ""},
		"node's name does not make a pod": {[]corev1.Pod{pod("a", "n1", false)}, "n1", ""},
		"no pods":                         {nil, "n1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := PodOfHost(tc.pods, tc.host); found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
