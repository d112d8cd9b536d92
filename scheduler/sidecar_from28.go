package scheduler

import corev1 "k8s.io/api/core/v1"

// IsSidecar reports whether an init container is a sidecar, which runs as long as the containers
// do.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
