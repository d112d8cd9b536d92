package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// Shortage returns how many replicas of a Deployment on the host network, where each needs its own
// node, have none until a node that is not ready or cordoned takes pods again. Without permission
// to list nodes it is 0.
func (c *Client) Shortage(ctx context.Context, deployment *unstructured.Unstructured) (replicas int, err error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &d); err != nil {
		return 0, fmt.Errorf("read %s: %w", nameOf(deployment), err)
	}
	pod := &d.Spec.Template.Spec
	if !pod.HostNetwork || d.Spec.Replicas == nil {
		return 0, nil
	}
	away, present, err := c.awayNodes(ctx, pod)
	return min(len(away), max(0, int(*d.Spec.Replicas)-present)), err
}

// awayNodes returns which of the nodes that a pod may run on are not ready or cordoned, and how
// many others there are.
func (c *Client) awayNodes(ctx context.Context, pod *corev1.PodSpec) (away map[string]bool, present int, err error) {
	selector, err := kubeapi.NodesOf(pod)
	if err != nil {
		return nil, 0, fmt.Errorf("read which nodes the pods may run on: %w", err)
	}
	away = map[string]bool{}
	for token := ""; ; {
		nodes := &corev1.NodeList{}
		err = c.api.List(ctx, nodes, client.MatchingLabelsSelector{Selector: selector}, client.Limit(listPage),
			client.Continue(token))
		if err != nil {
			var forbidden *kubeapi.ForbiddenError
			if errors.As(err, &forbidden) {
				err = nil
			}
			return nil, 0, err
		}
		for i := range nodes.Items {
			if kubeapi.NodeAway(&nodes.Items[i]) {
				away[nodes.Items[i].Name] = true
			} else {
				present++
			}
		}
		if token = nodes.Continue; token == "" {
			return away, present, nil
		}
	}
}

// awayFor returns the nodes for which pods may be waiting.
func (c *Client) awayFor(ctx context.Context, d *appsv1.Deployment, pods []corev1.Pod) (map[string]bool, error) {
	if !d.Spec.Template.Spec.HostNetwork || allReady(pods) {
		return nil, nil
	}
	away, _, err := c.awayNodes(ctx, &d.Spec.Template.Spec)
	return away, err
}

// split separates the pods that wait for a node that is away, at most one for each such node. On
// the host network no other node has room for them. Without any other pod, none is waiting: a
// scheduler that runs nowhere has failed.
func split(pods []corev1.Pod, away map[string]bool) (present, waiting []corev1.Pod) {
	for i := range pods {
		bound := pods[i].Spec.NodeName
		if !podstatus.Ready(&pods[i]) && (away[bound] || bound == "") && len(waiting) < len(away) {
			waiting = append(waiting, pods[i])
		} else {
			present = append(present, pods[i])
		}
	}
	if len(present) == 0 {
		return pods, nil
	}
	return present, waiting
}

// completeWithout reports whether a rollout is complete but for pods that wait for nodes.
func completeWithout(d *appsv1.Deployment, present, waiting []corev1.Pod) bool {
	if len(waiting) == 0 || d.Spec.Replicas == nil {
		return false
	}
	all, ready := *d.Spec.Replicas, int32(len(present))
	if d.Status.Replicas != all || d.Status.UpdatedReplicas != all || d.Status.AvailableReplicas < ready ||
		ready+int32(len(waiting)) != all {
		return false
	}
	return allReady(present)
}

func allReady(pods []corev1.Pod) bool {
	return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !podstatus.Ready(&pod) })
}

// waitingMessage describes a Deployment that is complete but for nodes that are away.
func waitingMessage(d *appsv1.Deployment, present []corev1.Pod, away map[string]bool) string {
	return fmt.Sprintf("%d of %d replicas are available: the others wait for nodes that are not ready or cordoned: %s",
		len(present), *d.Spec.Replicas, strings.Join(slices.Sorted(maps.Keys(away)), ", "))
}
