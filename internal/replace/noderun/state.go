package noderun

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// pullGrace is how long the pull of an image may fail: the kubelet tries again.
const pullGrace = time.Minute

// The kubelet's reasons for a container that waits (pkg/kubelet/images, types.go; pkg/kubelet/kuberuntime, kuberuntime_container.go).
var (
	pullReasons  = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed"}
	finalReasons = []string{"ErrImageNeverPull", "InvalidImageName", "CreateContainerError", "RunContainerError"}
)

// state is the state of the task, read from the status of its pod.
type state struct {
	// ended reports that its containers have ended, or that it was rejected.
	ended bool
	// message is the termination message of its last container.
	message string
	// failure is why there is no message, or why the pod does not start. grace is how long a
	// failure to start may last.
	failure string
	grace   time.Duration
	// started reports that the last container was started: then only it knows the state of the node.
	started bool
}

// stateOf reads the status of a pod.
func stateOf(pod *corev1.Pod) state {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended, waiting := c.State.Terminated, c.State.Waiting
		switch {
		case ended != nil && c.Name == mainContainer:
			s := state{ended: true, started: true, message: ended.Message}
			if ended.Message == "" {
				s.failure = fmt.Sprintf("it exited with code %d (%s)", ended.ExitCode, ended.Reason)
			}
			return s
		case ended != nil && ended.ExitCode != 0:
			return state{ended: true, failure: fmt.Sprintf("container %s (image %s) exited with code %d: %s", c.Name, c.Image, ended.ExitCode, ended.Message)}
		case waiting != nil && slices.Contains(finalReasons, waiting.Reason):
			return state{failure: fmt.Sprintf("container %s (image %s) does not start: %s: %s", c.Name, c.Image, waiting.Reason, waiting.Message)}
		case waiting != nil && slices.Contains(pullReasons, waiting.Reason):
			return state{failure: fmt.Sprintf("the node cannot pull image %s: %s", c.Image, waiting.Message), grace: pullGrace}
		case c.Name == mainContainer && c.State.Running != nil:
			return state{started: true}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return state{ended: true, failure: fmt.Sprintf("the kubelet ended it: %s %s", pod.Status.Reason, pod.Status.Message)}
	}
	return state{}
}

// report returns the report of a pod that has ended, or why there is none.
func (s state) report() (*Report, error) {
	switch {
	case s.message != "":
		return Decode(s.message)
	case s.started:
		return nil, errors.New(s.failure)
	}
	return nil, problem.Errorf("this node was not changed; every node has to have the images, or pull them from a registry", "%s", s.failure)
}
