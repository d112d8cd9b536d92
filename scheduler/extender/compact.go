package extender

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
)

// compactor reduces object memory in the informers: they keep thousands of nodes and tens of
// thousands of pods, and policies need only a small part of them.
type compactor struct {
	mu    sync.Mutex
	texts map[string]string
}

// maxTexts limits the number of shared strings; few other strings repeat in clusters.
const maxTexts = 1 << 16

func newCompactor() *compactor { return &compactor{texts: map[string]string{}} }

// shared returns a string that all objects with the same text share.
func (c *compactor) shared(text string) string {
	if known, ok := c.texts[text]; ok {
		return known
	}
	if len(c.texts) == maxTexts {
		c.texts = map[string]string{}
	}
	c.texts[text] = text
	return text
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// compact is the transform of the informers, which own the object.
func (c *compactor) compact(object interface{}) (interface{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		delete(accessor.GetAnnotations(), lastApplied)
		accessor.SetLabels(c.sharedLabels(accessor.GetLabels()))
	}
	switch o := object.(type) {
	case *corev1.Pod:
		c.pod(o)
	case *corev1.Node:
		for i := range o.Status.Images {
			names := o.Status.Images[i].Names
			for j := range names {
				names[j] = c.shared(names[j])
			}
		}
	}
	return object, nil
}

func (c *compactor) sharedLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	same := make(map[string]string, len(labels))
	for key, value := range labels {
		same[c.shared(key)] = c.shared(value)
	}
	return same
}

func (c *compactor) pod(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			one := &containers[i]
			one.Command, one.Args, one.Env, one.EnvFrom, one.VolumeMounts = nil, nil, nil, nil, nil
			one.LivenessProbe, one.ReadinessProbe, one.StartupProbe, one.Lifecycle, one.SecurityContext = nil, nil, nil, nil, nil
			one.Image = c.shared(one.Image)
		}
	}
	pod.Spec.EphemeralContainers = nil
	pod.Status.ContainerStatuses = resizes(pod.Spec.Containers, pod.Status.ContainerStatuses)
	pod.Status.InitContainerStatuses = resizes(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	pod.Status.EphemeralContainerStatuses = nil
	pod.Spec.NodeName = c.shared(pod.Spec.NodeName)
}

// resizes returns the requests in the statuses of containers that are being resized, which
// scheduler.PodRequests counts. Statuses with the spec's requests, or without requests, change
// nothing.
func resizes(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		s := &statuses[i]
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if s.Resources == nil || at < 0 {
			continue
		}
		spec := containers[at].Resources.Requests
		if !equality.Semantic.DeepEqual(s.Resources.Requests, spec) ||
			s.AllocatedResources != nil && !equality.Semantic.DeepEqual(s.AllocatedResources, spec) {
			kept = append(kept, corev1.ContainerStatus{
				Name: s.Name, AllocatedResources: s.AllocatedResources,
				Resources: &corev1.ResourceRequirements{Requests: s.Resources.Requests},
			})
		}
	}
	return kept
}
