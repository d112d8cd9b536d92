package apply

import (
	"fmt"
	"strings"
)

// RolloutError says why a Deployment does not work, with what its pods said last.
type RolloutError struct {
	Deployment string // namespace/name
	Reason     string // one of the Reason constants
	Message    string // in a sentence
	Pods       []string
	Logs       []ContainerLog
	Events     []string // of the pods or, without pods, of the Deployment; oldest first, with their count
	Err        error    // of the context when the wait was ended by it; else nil
}

// ContainerLog is the end of what one container wrote.
type ContainerLog struct {
	Pod       string
	Container string
	Previous  bool     // of the run before the present one
	Lines     []string // oldest first
	Err       error    // why there are no lines
}

// Error tells the reason in its first line; events and log lines follow, indented.
func (e *RolloutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Deployment/%s does not come up (%s): %s", e.Deployment, e.Reason, e.Message)
	if len(e.Events) > 0 {
		b.WriteString("\n  events:")
		for _, event := range e.Events {
			b.WriteString("\n    " + event)
		}
	}
	for _, log := range e.Logs {
		run := "log"
		if log.Previous {
			run = "log of the run before"
		}
		fmt.Fprintf(&b, "\n  %s, pod %s, container %s:", run, log.Pod, log.Container)
		if log.Err != nil {
			fmt.Fprintf(&b, "\n    cannot be read: %v", log.Err)
		}
		if log.Err == nil && len(log.Lines) == 0 {
			b.WriteString("\n    (nothing was written)")
		}
		for _, line := range log.Lines {
			b.WriteString("\n    " + line)
		}
	}
	return b.String()
}

// Unwrap returns the context's error when the wait was ended by it.
func (e *RolloutError) Unwrap() error { return e.Err }

// hints say what usually helps.
var hints = map[string]string{
	ReasonCrash:                    "the last log lines say why the scheduler ended; a configuration it does not understand is the usual cause",
	ReasonImagePull:                "is the image in the registry, may the node pull it, and is it there for the node's architecture? Without a registry load it into the node's container runtime and set the pull policy Never",
	ReasonImageName:                "give the image as REGISTRY/REPOSITORY:TAG",
	ReasonContainerConfig:          "a ConfigMap, Secret or key that the pod refers to is missing, or its security context cannot be met: see the events",
	ReasonContainerStart:           "the container runtime could not start the image: is the entrypoint in it, and built for the node's architecture?",
	ReasonUnschedulable:            "does a node carry the label of the node selector, is its taint tolerated, is its port free, has it enough CPU and memory? See `kubectl describe pod`",
	ReasonPodFailed:                "the kubelet gave the pod up: see its events and the node's state (disk, memory)",
	ReasonPodsRefused:              "a quota, a pod security rule, an admission webhook or a missing service account or priority class keeps pods from being made",
	ReasonProgressDeadlineExceeded: "see the events and the state of the nodes",
	ReasonTimeout:                  "give it longer with --timeout, or look at the pods with `kubectl describe pod`",
	ReasonGone:                     "somebody deleted the Deployment meanwhile: run the command again",
}

// Hint says what to look at first.
func (e *RolloutError) Hint() string { return hints[e.Reason] }
