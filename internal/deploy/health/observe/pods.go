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
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// readPods reads the replicas and their nodes.
func (r *reading) readPods(ctx context.Context) error {
	app := ownership.Scheduler
	if r.Kind == health.Extender {
		app = ownership.Extender
	}
	options := metav1.ListOptions{LabelSelector: ownership.LabelName + "=" + app + "," + ownership.LabelInstance + "=" + r.Name, Limit: pageSize}
	for {
		list, err := r.Kube.CoreV1().Pods(r.Workload.Namespace).List(ctx, options)
		if err != nil {
			return kubeapi.Explain("list pods of "+r.String(), err)
		}
		r.pods = append(r.pods, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
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
		Pod: pod.Name, Node: pod.Spec.NodeName, Ready: kubeapi.PodReady(pod), Since: since(pod.CreationTimestamp), Terminating: pod.DeletionTimestamp != nil,
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && !c.LastTransitionTime.IsZero():
			replica.Since = since(c.LastTransitionTime)
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			replica.Message = c.Message
		}
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		replica.Restarts += c.RestartCount
		switch {
		case c.Ready:
		case c.State.Waiting != nil:
			replica.Reason, replica.Message = c.State.Waiting.Reason, c.State.Waiting.Message
		case c.State.Terminated != nil:
			replica.Reason, replica.Message = c.State.Terminated.Reason, c.State.Terminated.Message
		}
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
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			return ""
		}
		return "is not ready since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return "has not reported that it is ready"
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
		options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + name + ",spec.nodeName=,status.phase=" + string(corev1.PodPending), Limit: pageSize}
		for {
			list, err := r.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				pod := &list.Items[i]
				if tried, gated := reported(pod); pod.DeletionTimestamp == nil && !gated {
					found.Add(pod.Namespace+"/"+pod.Name, since(pod.CreationTimestamp), tried)
				}
			}
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
	}
	return found, nil
}

// reported reports whether a scheduler has reported on a pod that is not bound, and whether the pod has scheduling gates. The API server itself
// reports the gates.
func reported(pod *corev1.Pod) (tried, gated bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return true, c.Reason == corev1.PodReasonSchedulingGated
		}
	}
	return false, false
}
