package apply

import (
	"fmt"
	"strings"
)

// RolloutError is returned when a Deployment fails, with the events and last log lines of its pods.
type RolloutError struct {
	Deployment string // namespace/name
	Reason     string // one of the Reason constants
	Message    string // in a sentence
	Pods       []string
	Logs       []ContainerLog
	Events     []string // of the pods or, without pods, of the Deployment; oldest first, with their count
	Err        error    // of the context, if it ended the wait
}

// ContainerLog is the end of one container's log.
type ContainerLog struct {
	Pod       string
	Container string
	Previous  bool     // of the previous run
	Lines     []string // oldest first
	Err       error    // why the log is unavailable
}

// Error returns the reason in its first line. Events and log lines follow, indented.
func (e *RolloutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Deployment/%s failed (%s): %s", e.Deployment, e.Reason, e.Message)
	if len(e.Events) > 0 {
		b.WriteString("\n  events:")
		for _, event := range e.Events {
			b.WriteString("\n    " + event)
		}
	}
	for _, log := range e.Logs {
		run := "log"
		if log.Previous {
			run = "log of the previous run"
		}
		fmt.Fprintf(&b, "\n  %s, pod %s, container %s:", run, log.Pod, log.Container)
		if log.Err != nil {
			fmt.Fprintf(&b, "\n    unavailable: %v", log.Err)
		}
		if log.Err == nil && len(log.Lines) == 0 {
			b.WriteString("\n    (empty)")
		}
		for _, line := range log.Lines {
			b.WriteString("\n    " + line)
		}
	}
	return b.String()
}

// Unwrap returns the context's error if it ended the wait.
func (e *RolloutError) Unwrap() error { return e.Err }

// hints are the usual remedies by reason.
var hints = map[string]string{
	ReasonCrash: "the last log lines show why the scheduler exited; the usual cause is an invalid " +
		"configuration",
	ReasonImagePull: "check that the image is in the registry for the node's architecture and that the " +
		"node may pull it; without a registry load it into the node's container runtime and set the pull policy Never",
	ReasonImageName: "the format is REGISTRY/REPOSITORY:TAG",
	ReasonContainerConfig: "a ConfigMap, Secret or key that the pod refers to is missing, or its security " +
		"context cannot be met: see the events",
	ReasonContainerStart: "the container runtime failed to start the image: check that it has the entrypoint, " +
		"built for the node's architecture",
	ReasonUnschedulable: "check the node selector, the tolerations, the port, and the CPU and memory of the " +
		"nodes with `kubectl describe pod`",
	ReasonPodFailed: "see the pod's events and the state of the node (disk, memory)",
	ReasonPodsRejected: "the cause is a quota, pod security, an admission webhook, or a missing service " +
		"account or priority class",
	ReasonProgressDeadlineExceeded: "see the events and the state of the nodes",
	ReasonTimeout:                  "allow more time with --timeout, or inspect the pods with `kubectl describe pod`",
	ReasonControllersIdle: "check kube-controller-manager with `kubectl -n kube-system get pods` and in the " +
		"logs of its nodes; when it runs, run the command again",
	ReasonGone: "the Deployment was deleted during the rollout: run the command again",
}

// Hint returns the first checks for the reason.
func (e *RolloutError) Hint() string { return hints[e.Reason] }
