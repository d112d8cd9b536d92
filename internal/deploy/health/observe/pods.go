package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// describePod describes a replica. node is its node, or nil if that was not read.
func describePod(pod *corev1.Pod, node *corev1.Node) health.Replica {
	replica := health.Replica{
		Pod: pod.Name, Node: pod.Spec.NodeName, NodeProblem: nodeProblem(node), Ready: podstatus.Ready(pod),
		Since: pod.CreationTimestamp.UTC(), Terminating: pod.DeletionTimestamp != nil,
	}
	if c := podstatus.Condition(pod, corev1.PodReady); c != nil && !c.LastTransitionTime.IsZero() {
		replica.Since = c.LastTransitionTime.UTC()
	}
	for _, c := range pod.Status.ContainerStatuses {
		replica.Restarts += c.RestartCount
	}
	if c := podstatus.Unscheduled(pod); c != nil {
		replica.Message = c.Message
	} else if c := podstatus.NotRunning(pod); c != nil {
		replica.Reason, replica.Message = c.Reason, c.Message
	}
	return replica
}

// nodeProblem returns why a node does not run its pods, as a predicate. It returns "" if the node
// runs them, or was not read.
func nodeProblem(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	switch c := kubeapi.ReadyCondition(node); {
	case node.Name == "":
		return "does not exist"
	case c == nil:
		return "has not reported that it is ready"
	case c.Status != corev1.ConditionTrue:
		return "is not ready since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return ""
}

// addWaiting counts pods that are not bound. Pods that are deleted or have scheduling gates do not
// count. The API server itself reports the gates.
func addWaiting(counted *health.Waiting, pods []corev1.Pod) {
	for i := range pods {
		c := podstatus.Condition(&pods[i], corev1.PodScheduled)
		if pods[i].DeletionTimestamp == nil && (c == nil || c.Reason != corev1.PodReasonSchedulingGated) {
			counted.Add(pods[i].Namespace+"/"+pods[i].Name, pods[i].CreationTimestamp.UTC(), c != nil)
		}
	}
}
