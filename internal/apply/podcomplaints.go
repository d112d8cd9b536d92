package apply

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of a [RolloutError]. Where the kubelet or the deployment controller has a word for it, it is theirs.
const (
	ReasonCrash                    = "CrashLoopBackOff"
	ReasonImagePull                = "ImagePullBackOff"
	ReasonImageName                = "InvalidImageName"
	ReasonContainerConfig          = "CreateContainerConfigError"
	ReasonContainerStart           = "RunContainerError"
	ReasonUnschedulable            = "Unschedulable"
	ReasonPodFailed                = "PodFailed"
	ReasonPodsRefused              = "FailedCreate"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonGone                     = "Gone"
	ReasonTimeout                  = "Timeout"
)

const (
	// configGrace is how long a container may lack its ConfigMap or Secret: the kubelet may see them later than the pod.
	configGrace = 5 * time.Second
	// refusalGrace is how long pods may be refused: a service account or quota may be there a moment later.
	refusalGrace = 10 * time.Second
	// failedPodGrace is how long a pod that failed as a whole may be there before it counts: it may have been evicted by chance.
	failedPodGrace = 10 * time.Second
)

// waitingReasons says what the kubelet's reasons for a waiting container mean
// (k8s.io/kubernetes/pkg/kubelet/images/types.go and kuberuntime/kuberuntime_container.go).
var waitingReasons = map[string]string{
	"ImagePullBackOff":           ReasonImagePull,
	"ErrImagePull":               ReasonImagePull,
	"ErrImageNeverPull":          ReasonImagePull,
	"RegistryUnavailable":        ReasonImagePull,
	"SignatureValidationFailed":  ReasonImagePull,
	"ImageInspectError":          ReasonImageName,
	"InvalidImageName":           ReasonImageName,
	"CreateContainerConfigError": ReasonContainerConfig,
	"CreateContainerError":       ReasonContainerStart,
	"RunContainerError":          ReasonContainerStart,
	"PreStartHookError":          ReasonContainerStart,
}

// podComplaints lists what is wrong with one pod, the worst first.
func podComplaints(pod *corev1.Pod, forgiven map[string]int32, o WaitOptions) []complaint {
	var found []complaint
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for i := range statuses {
		c := &statuses[i]
		if crash, ok := crashOf(pod, c, forgiven[containerKey(pod, c)]); ok {
			found = append(found, crash)
		} else if waiting, ok := waitingOf(pod, c, o); ok {
			found = append(found, waiting)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		found = append(found, complaint{
			pod: pod.Name, reason: ReasonPodFailed, grace: failedPodGrace,
			message: fmt.Sprintf("pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message),
		})
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			found = append(found, complaint{
				pod: pod.Name, reason: ReasonUnschedulable, grace: o.UnschedulableGrace,
				message: fmt.Sprintf("no node takes pod %s: %s", pod.Name, condition.Message),
			})
		}
	}
	return found
}

func containerKey(pod *corev1.Pod, c *corev1.ContainerStatus) string {
	return string(pod.UID) + "/" + c.Name
}

// crashOf tells whether a container has ended with an error more often than is forgiven.
func crashOf(pod *corev1.Pod, c *corev1.ContainerStatus, forgiven int32) (complaint, bool) {
	ended := c.State.Terminated
	ends := c.RestartCount
	if ended != nil {
		ends++
	} else {
		ended = c.LastTerminationState.Terminated
	}
	backOff := c.State.Waiting != nil && c.State.Waiting.Reason == ReasonCrash
	if ends <= forgiven || !backOff && (ended == nil || ended.ExitCode == 0) {
		return complaint{}, false
	}
	message := fmt.Sprintf("container %s of pod %s does not stay up", c.Name, pod.Name)
	if ended != nil {
		message = fmt.Sprintf("container %s of pod %s ended with exit code %d", c.Name, pod.Name, ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			message += " (" + ended.Reason + ")"
		}
	}
	if c.RestartCount > 0 {
		message += fmt.Sprintf(", restarted %d times", c.RestartCount)
	}
	return complaint{pod: pod.Name, container: c.Name, reason: ReasonCrash, message: message}, true
}

// waitingOf tells whether a container cannot start.
func waitingOf(pod *corev1.Pod, c *corev1.ContainerStatus, o WaitOptions) (complaint, bool) {
	if c.State.Waiting == nil {
		return complaint{}, false
	}
	reason, ok := waitingReasons[c.State.Waiting.Reason]
	if !ok {
		return complaint{}, false
	}
	found := complaint{pod: pod.Name, container: c.Name, reason: reason}
	switch reason {
	case ReasonImagePull:
		found.grace = o.PullGrace
		found.message = fmt.Sprintf("image %s of pod %s cannot be had: %s", c.Image, pod.Name, c.State.Waiting.Message)
	case ReasonImageName:
		found.message = fmt.Sprintf("image name %q of pod %s is not one: %s", c.Image, pod.Name, c.State.Waiting.Message)
	default:
		found.grace = configGrace
		found.message = fmt.Sprintf("container %s of pod %s cannot be started: %s", c.Name, pod.Name, c.State.Waiting.Message)
	}
	return found, true
}
