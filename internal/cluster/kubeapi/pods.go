package kubeapi

import corev1 "k8s.io/api/core/v1"

// PodOfHost returns the pod of the process with a host name, or nil. A pod's host name is its own
// name. On the host network it is the machine's host name, which other machines may have too: the
// pod is found only if it is the only pod.
func PodOfHost(pods []corev1.Pod, host string) *corev1.Pod {
	for i := range pods {
		if pods[i].Name == host && !pods[i].Spec.HostNetwork {
			return &pods[i]
		}
	}
	if len(pods) == 1 && pods[0].Spec.HostNetwork {
		return &pods[0]
	}
	return nil
}
