package noderun

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// pullGrace is the time that an image pull may fail: the kubelet tries again.
const pullGrace = time.Minute

// state is the task's state, read from the status of its pod.
type state struct {
	// ended reports that its containers have ended, or that it was rejected.
	ended bool
	// message is its last container's termination message.
	message string
	// failure is the reason why there is no message, or why the pod does not start. grace is the time
	// that a failure to start may last.
	failure string
	grace   time.Duration
	// started reports that the last container was started: then only it knows the node's state.
	started bool
}

// stateOf reads a pod's status.
func stateOf(pod *corev1.Pod) state {
	for _, c := range podstatus.Containers(pod) {
		ended, waiting, class := c.State.Terminated, c.State.Waiting, podstatus.Starting
		if waiting != nil {
			class = podstatus.Classify(waiting.Reason)
		}
		switch {
		case ended != nil && c.Name == mainContainer:
			s := state{ended: true, started: true, message: ended.Message}
			if ended.Message == "" {
				s.failure = fmt.Sprintf("it exited with code %d (%s)", ended.ExitCode, ended.Reason)
			}
			return s
		case ended != nil && ended.ExitCode != 0:
			return state{ended: true, failure: fmt.Sprintf("container %s (image %s) exited with code %d: %s", c.Name, c.Image,
				ended.ExitCode, ended.Message)}
		case class == podstatus.ImagePull:
			return state{failure: fmt.Sprintf("the node cannot pull image %s: %s", c.Image, waiting.Message),
				grace: class.Grace(pullGrace)}
		case class.Preventing():
			return state{
				failure: fmt.Sprintf("container %s (image %s) does not start: %s: %s", c.Name, c.Image, waiting.Reason,
					waiting.Message),
				grace: class.Grace(pullGrace),
			}
		case c.Name == mainContainer && c.State.Running != nil:
			return state{started: true}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return state{ended: true, failure: fmt.Sprintf("the kubelet ended it: %s %s", pod.Status.Reason, pod.Status.Message)}
	}
	return state{}
}

// report returns the report from a pod that has ended, or why there is none.
func (s state) report() (*Report, error) {
	switch {
	case s.message != "":
		return Decode(s.message)
	case s.started:
		return nil, errors.New(s.failure)
	}
	return nil,
		problem.Errorf("this node was not changed; every node has to have the images, or pull them from a registry", "%s",
			s.failure)
}
