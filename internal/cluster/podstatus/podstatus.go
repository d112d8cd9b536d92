// Package podstatus answers from a pod's status whether it is ready, and why it does not run.
package podstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Condition returns a pod's condition with that type, or nil.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// Ready reports whether a pod's condition Ready is true.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Unscheduled returns the condition PodScheduled from a pod that was not bound when a scheduler
// last tried, or that has scheduling gates. It returns nil for other pods.
func Unscheduled(pod *corev1.Pod) *corev1.PodCondition {
	if c := Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c
	}
	return nil
}

// Unschedulable returns the scheduler's message about a pod that no node accepts.
func Unschedulable(pod *corev1.Pod) (message string, ok bool) {
	c := Unscheduled(pod)
	if c == nil || c.Reason != corev1.PodReasonUnschedulable {
		return "", false
	}
	return c.Message, true
}

// Containers returns the status for a pod's init containers and containers.
func Containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// StatusOf returns a pod container's status, or nil if the kubelet has not reported it.
func StatusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	all := pod.Status.ContainerStatuses
	i := slices.IndexFunc(all, func(c corev1.ContainerStatus) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Container is a container that does not run.
type Container struct {
	Name, Image     string
	Reason, Message string
	// Ended reports that the container has ended. ExitCode is its exit code then.
	Ended    bool
	ExitCode int32
}

// NotRunning returns a pod's first container that waits or has ended, or nil if all containers run.
// Init containers that have succeeded do not count.
func NotRunning(pod *corev1.Pod) *Container {
	for i, c := range Containers(pod) {
		waiting, ended := c.State.Waiting, c.State.Terminated
		switch {
		case waiting != nil:
			return &Container{Name: c.Name, Image: c.Image, Reason: waiting.Reason, Message: waiting.Message}
		case ended != nil && (ended.ExitCode != 0 || i >= len(pod.Status.InitContainerStatuses)):
			return &Container{
				Name: c.Name, Image: c.Image, Reason: ended.Reason, Message: ended.Message, Ended: true, ExitCode: ended.ExitCode,
			}
		}
	}
	return nil
}

// String describes the container: its name, its exit code, the reason and the message.
func (c *Container) String() string {
	text := "container " + c.Name
	if c.Ended {
		text = fmt.Sprintf("%s exited with code %d", text, c.ExitCode)
	}
	for _, part := range []string{c.Reason, strings.TrimSpace(c.Message)} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// WhyNotReady returns why a pod is not ready, or "" if it is ready.
func WhyNotReady(pod *corev1.Pod) string {
	if Ready(pod) {
		return ""
	}
	if c := NotRunning(pod); c != nil {
		return c.String()
	}
	if c := Unscheduled(pod); c != nil {
		return "not scheduled: " + c.Message
	}
	return "not ready: " + cmp.Or(string(pod.Status.Phase), "no status")
}
