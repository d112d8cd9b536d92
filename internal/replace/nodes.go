package replace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Goal is the wanted state for every control-plane node's default scheduler.
type Goal struct {
	// Restored is the original scheduler, otherwise a replaced one.
	Restored bool
	// Image of a replaced scheduler. If it is empty, any image is accepted.
	Image string
	// Command is the command line for each node, without the node's name.
	Command string
}

// NodePlan is the next action on one of several control-plane nodes, and its default scheduler's
// state according to the API server.
type NodePlan struct {
	Node string `json:"node"`
	// Ready reports whether the node is ready, SchedulerReady whether its default scheduler is.
	Ready          bool `json:"ready"`
	SchedulerReady bool `json:"schedulerReady"`
	Leads          bool `json:"leads"`
	// Image is the image of the node's default scheduler, Replacement identifies its replacement.
	// Both are empty if the node runs no default scheduler.
	Image       string `json:"image"`
	Replacement string `json:"replacement,omitempty"`
	// Done reports whether the node's default scheduler has reached the goal, judging by its pod:
	// only the node knows its files.
	Done bool `json:"done"`
	// Command is the command line to run on the node.
	Command string `json:"command"`
	// Programs are the programs that the node's default scheduler has in its command.
	Programs []string `json:"-"`
}

// PlanNodes lists the control-plane nodes in processing order. The node with the leading scheduler
// is last, so that the lease changes hands once.
func PlanNodes(ctx context.Context, d Deps, info *inspect.Info, goal Goal) ([]NodePlan, error) {
	_, unknown := FindLayout(info)
	if unknown != nil && info.Layout != inspect.LayoutUnknown {
		return nil, unknown
	}
	if info.ControlPlane.Truncated {
		return nil, problem.Invalidf("run pmk-sched on each node",
			"list the control-plane nodes: only %d of them were inspected", info.ControlPlane.Count)
	}
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return nil, err
	}
	if unknown != nil && !goal.Restored {
		return nil, unknown
	}
	leader, err := d.leader(ctx, pods)
	if err != nil {
		d.Warn(fmt.Sprintf("the node with the leading scheduler may not be the last one: %v", err))
	}
	return planNodes(info.ControlPlane.Nodes, pods, leader, goal), nil
}

// leader returns the node with the scheduler that holds the default schedulers' lease, or "" if
// there is none or it is unknown.
func (d Deps) leader(ctx context.Context, pods []corev1.Pod) (string, error) {
	lease, err := kubeapi.DefaultLease(ctx, d.Kube.CoordinationV1(), pods)
	if err != nil {
		return "", kubeapi.Explain("read the lease "+schedulerLease, err)
	}
	pod, err := kubeapi.PodOfLeader(ctx, d.Kube, lease, pods, schedulerContainer)
	if pod == nil {
		return "", err
	}
	return pod.Spec.NodeName, nil
}

// planNodes makes the plan. leader is the node with the scheduler that holds the lease, or empty.
func planNodes(nodes []inspect.ControlPlaneNode, pods []corev1.Pod, leader string, goal Goal) []NodePlan {
	plan := []NodePlan{}
	for _, node := range nodes {
		entry := NodePlan{
			Node: node.Name, Ready: node.Ready, Command: goal.Command + " --node " + node.Name,
			Leads: leader == node.Name,
		}
		if goal.Restored {
			entry.Command = goal.Command
		}
		for i := range pods {
			if pods[i].Spec.NodeName == node.Name {
				entry.read(&pods[i])
			}
		}
		entry.Done = entry.Image != "" && goal.reached(entry)
		plan = append(plan, entry)
	}
	slices.SortStableFunc(plan, func(a, b NodePlan) int {
		switch {
		case a.Leads == b.Leads:
			return strings.Compare(a.Node, b.Node)
		case b.Leads:
			return -1
		}
		return 1
	})
	return plan
}

// reached reports whether a scheduler is as wanted.
func (g Goal) reached(n NodePlan) bool {
	if g.Restored {
		return n.Replacement == ""
	}
	return n.Replacement != "" && (g.Image == "" || g.Image == n.Image)
}

// read reads the static pod of the node's default scheduler.
func (n *NodePlan) read(pod *corev1.Pod) {
	n.Replacement = pod.Annotations[staticpod.AnnotationReplacement]
	c := kubeapi.DefaultScheduler(pod)
	if c == nil {
		return
	}
	n.Image, n.Programs = c.Image, staticpod.Programs(c, schedulerContainer)
	if status := podstatus.StatusOf(pod, c.Name); status != nil {
		n.SchedulerReady = status.Ready
	}
}

// Check returns an error if a run through all nodes cannot reach the goal on one of them.
func (g Goal) Check(plan []NodePlan) error {
	const hint = "resume when it is ready; or leave --pod-image out, and run the printed commands on the other nodes"
	for _, n := range plan {
		switch {
		case !n.Ready:
			return problem.Errorf(hint, "node %s is not ready, so that nothing can be run on it; no node was changed", n.Node)
		case n.Image == "" && !g.Restored: // restore recreates a lost one
			return problem.Errorf(hint, "node %s shows no static pod with a default scheduler; no node was changed", n.Node)
		}
	}
	return nil
}

// Directories returns the directories on a node that replace and restore read or write. None is
// below another.
func Directories(layout inspect.Layout) []string {
	all := []string{path.Dir(path.Dir(layout.Manifest)), path.Dir(layout.ConfigDir), path.Dir(layout.Kubeconfig),
		path.Dir(layout.AdminKubeconfig), staticpod.StateDir}
	if layout.EnvFile != "" {
		all = append(all, path.Dir(layout.EnvFile))
	}
	slices.Sort(all)
	var top []string
	for _, dir := range all {
		if !slices.ContainsFunc(top, func(above string) bool { return dir == above || strings.HasPrefix(dir, above+"/") }) {
			top = append(top, dir)
		}
	}
	return top
}
