package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// readPods reads the replicas and their nodes.
func (r *reading) readPods(ctx context.Context) error {
	app := ownership.Scheduler
	if r.Kind == health.Extender {
		app = ownership.Extender
	}
	options := metav1.ListOptions{LabelSelector: ownership.LabelName + "=" + app + "," + ownership.LabelInstance + "=" +
		r.Name, Limit: pageSize}
	for list, err := range kubeapi.Pages(ctx, r.Kube.CoreV1().Pods(r.Workload.Namespace).List, options) {
		if err != nil {
			return kubeapi.Explain("list pods of "+r.String(), err)
		}
		r.pods = append(r.pods, list.Items...)
	}
	slices.SortFunc(r.pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Spec.NodeName+"/"+a.Name, b.Spec.NodeName+"/"+b.Name)
	})
	for i := range r.pods {
		replica := describePod(&r.pods[i])
		if replica.Node != "" {
			var err error
			if replica.NodeProblem, err = r.nodeProblem(ctx, replica.Node); err != nil {
				r.try(err)
			}
		}
		r.Replicas = append(r.Replicas, replica)
	}
	return nil
}

// describePod returns the state of a pod as a replica.
func describePod(pod *corev1.Pod) health.Replica {
	replica := health.Replica{
		Pod: pod.Name, Node: pod.Spec.NodeName, Ready: podstatus.Ready(pod), Since: since(pod.CreationTimestamp),
		Terminating: pod.DeletionTimestamp != nil,
	}
	if c := podstatus.Condition(pod, corev1.PodReady); c != nil && !c.LastTransitionTime.IsZero() {
		replica.Since = since(c.LastTransitionTime)
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
// runs them.
func (ob *observer) nodeProblem(ctx context.Context, name string) (string, error) {
	if found, known := ob.nodes[name]; known {
		return found, nil
	}
	node, err := ob.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		ob.nodes[name] = "does not exist"
	case err != nil:
		return "", kubeapi.Explain("read Node/"+name, err)
	default:
		ob.nodes[name] = notReady(node)
	}
	return ob.nodes[name], nil
}

func notReady(node *corev1.Node) string {
	switch c := kubeapi.ReadyCondition(node); {
	case c == nil:
		return "has not reported that it is ready"
	case c.Status != corev1.ConditionTrue:
		return "is not ready since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return ""
}

// waiting counts the pods that name the scheduler, or another profile of it, and are not bound.
func (r *reading) waiting(ctx context.Context) error {
	names := []string{r.Name}
	for _, name := range r.configuration().Profiles {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var found *health.Waiting
	for attempt := 0; ; attempt++ {
		var err error
		if found, err = r.countWaiting(ctx, names); err == nil {
			break
		}
		if attempt > 0 || !apierrors.IsResourceExpired(err) { // the list expired between two pages
			return kubeapi.Explain("list the pods that wait for "+r.String(), err)
		}
	}
	r.Waiting = found
	return nil
}

// countWaiting lists the pods in pages; the API server selects them.
func (r *reading) countWaiting(ctx context.Context, schedulers []string) (*health.Waiting, error) {
	found := &health.Waiting{}
	for _, name := range schedulers {
		options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + name + ",spec.nodeName=,status.phase=" +
			string(corev1.PodPending), Limit: pageSize}
		for list, err := range kubeapi.Pages(ctx, r.Kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				pod := &list.Items[i]
				if tried, gated := reported(pod); pod.DeletionTimestamp == nil && !gated {
					found.Add(pod.Namespace+"/"+pod.Name, since(pod.CreationTimestamp), tried)
				}
			}
		}
	}
	return found, nil
}

// reported reports whether a scheduler has reported on a pod that is not bound, and whether the pod
// has scheduling gates. The API server itself reports the gates.
func reported(pod *corev1.Pod) (tried, gated bool) {
	c := podstatus.Condition(pod, corev1.PodScheduled)
	return c != nil, c != nil && c.Reason == corev1.PodReasonSchedulingGated
}
