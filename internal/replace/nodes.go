package replace

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

// NodePlan is what to run on one of several control-plane nodes.
type NodePlan struct {
	Node  string `json:"node"`
	Image string `json:"image"`
	// Done reports whether its default scheduler is replaced by the image.
	Done bool `json:"done"`
	// Command is to run on that node.
	Command string `json:"command"`
}

// PlanNodes lists the control-plane nodes with the command to run on each, one after the other, and which are done.
func PlanNodes(ctx context.Context, d Deps, info *cluster.Info, image, command string) ([]NodePlan, error) {
	if _, err := FindLayout(info.Layout); err != nil && info.Layout != cluster.LayoutUnknown {
		return nil, err
	}
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return nil, err
	}
	byNode := map[string]corev1.Pod{}
	for _, pod := range pods {
		byNode[pod.Spec.NodeName] = pod
	}
	plan := []NodePlan{}
	for _, node := range info.ControlPlane.Nodes {
		pod := byNode[node.Name]
		entry := NodePlan{Node: node.Name, Command: command + " --node " + node.Name}
		for _, container := range pod.Spec.Containers {
			if container.Name == schedulerContainer {
				entry.Image = container.Image
			}
		}
		entry.Done = pod.Annotations[staticpod.AnnotationReplacement] != "" && (image == "" || image == entry.Image)
		plan = append(plan, entry)
	}
	return plan, nil
}
