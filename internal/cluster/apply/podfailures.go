package apply

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// Reasons in a [RolloutError]. Where the kubelet or the deployment controller has a reason, it is
// the same.
const (
	ReasonCrash                    = "CrashLoopBackOff"
	ReasonImagePull                = "ImagePullBackOff"
	ReasonImageName                = "InvalidImageName"
	ReasonContainerConfig          = "CreateContainerConfigError"
	ReasonContainerStart           = "RunContainerError"
	ReasonUnschedulable            = "Unschedulable"
	ReasonPodFailed                = "PodFailed"
	ReasonPodsRejected             = "FailedCreate"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonGone                     = "Gone"
	ReasonControllersIdle          = "ControllersIdle"
	ReasonTimeout                  = "Timeout"
)

const (
	// rejectionGrace is the time for which pods may be rejected: a service account or quota may appear
	// a moment later.
	rejectionGrace = 10 * time.Second
	// failedPodGrace is the time after which a failed pod counts: it may have been evicted.
	failedPodGrace = 10 * time.Second
)

// podFailures returns one pod's failures, the worst first.
func podFailures(pod *corev1.Pod, ignored map[string]int32, o WaitOptions) []failure {
	var found []failure
	for _, c := range podstatus.Containers(pod) {
		if crash, ok := crashOf(pod, &c, ignored[containerKey(pod, &c)]); ok {
			found = append(found, crash)
		} else if waiting, ok := waitingOf(pod, &c, o); ok {
			found = append(found, waiting)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		found = append(found, failure{
			pod: pod.Name, reason: ReasonPodFailed, grace: failedPodGrace,
			message: fmt.Sprintf("pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message),
		})
	}
	if message, ok := podstatus.Unschedulable(pod); ok {
		found = append(found, failure{
			pod: pod.Name, reason: ReasonUnschedulable, grace: o.UnschedulableGrace,
			message: fmt.Sprintf("no node accepts pod %s: %s", pod.Name, message),
		})
	}
	return found
}

func containerKey(pod *corev1.Pod, c *corev1.ContainerStatus) string {
	return string(pod.UID) + "/" + c.Name
}

// crashOf reports whether a container has failed more often than is ignored.
func crashOf(pod *corev1.Pod, c *corev1.ContainerStatus, ignored int32) (failure, bool) {
	ended := c.State.Terminated
	ends := c.RestartCount
	if ended != nil {
		ends++
	} else {
		ended = c.LastTerminationState.Terminated
	}
	backOff := c.State.Waiting != nil && podstatus.Classify(c.State.Waiting.Reason) == podstatus.Crash
	if ends <= ignored || !backOff && (ended == nil || ended.ExitCode == 0) {
		return failure{}, false
	}
	message := fmt.Sprintf("container %s of pod %s keeps exiting", c.Name, pod.Name)
	if ended != nil {
		message = fmt.Sprintf("container %s of pod %s exited with code %d", c.Name, pod.Name, ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			message += " (" + ended.Reason + ")"
		}
	}
	if c.RestartCount > 0 {
		message += ", restarted " + plural.Count(int(c.RestartCount), "time")
	}
	return failure{pod: pod.Name, container: c.Name, reason: ReasonCrash, message: message}, true
}

// waitingOf reports whether a container cannot start.
func waitingOf(pod *corev1.Pod, c *corev1.ContainerStatus, o WaitOptions) (failure, bool) {
	if c.State.Waiting == nil {
		return failure{}, false
	}
	class := podstatus.Classify(c.State.Waiting.Reason)
	found := failure{pod: pod.Name, container: c.Name, grace: class.Grace(o.PullGrace)}
	switch class {
	case podstatus.ImagePull, podstatus.ImageAbsent:
		found.reason = ReasonImagePull
		found.message = fmt.Sprintf("image %s of pod %s cannot be pulled: %s", c.Image, pod.Name, c.State.Waiting.Message)
	case podstatus.ImageName:
		found.reason = ReasonImageName
		found.message = fmt.Sprintf("image name %q of pod %s is invalid: %s", c.Image, pod.Name, c.State.Waiting.Message)
	case podstatus.Config, podstatus.Start:
		found.reason = ReasonContainerStart
		if class == podstatus.Config {
			found.reason = ReasonContainerConfig
		}
		found.message = fmt.Sprintf("container %s of pod %s does not start: %s", c.Name, pod.Name, c.State.Waiting.Message)
	default:
		return failure{}, false
	}
	return found, true
}
