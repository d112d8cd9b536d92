package deploy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// chooseReplicas chooses the user's replicas, else one for each control-plane node, or two if the
// control plane is outside the cluster. Leader election is always on, so that several replicas are
// safe.
func (p *planner) chooseReplicas() error {
	replicas := 1
	counted := p.Cluster != nil && !p.hosted() && !p.request.Spec.AnyNode && len(p.request.Spec.NodeSelector) == 0
	var nodes []inspect.ControlPlaneNode
	if counted {
		var err error
		if nodes, err = p.nodesOfImage(); err != nil {
			return err
		}
	}
	switch {
	case p.request.Spec.Replicas > 0:
		replicas = int(p.request.Spec.Replicas)
		if counted && replicas > len(nodes) {
			p.warn("%s for %s: on the host network each needs its own node", plural.Count(replicas, "replica"),
				plural.Count(len(nodes), "control-plane node"))
		}
	case counted:
		replicas = max(1, len(nodes))
		p.note("replicas %d: one for each control-plane node", replicas)
	case p.hosted() && len(p.request.Spec.NodeSelector) == 0:
		replicas = min(2, p.Cluster.Nodes.Count)
		where := ", on different nodes and in different zones"
		if replicas < 2 {
			where = ""
		}
		p.note("replicas %d: of %s%s", replicas, plural.Count(p.Cluster.Nodes.Count, "node"), where)
	}
	p.countShortage(replicas, nodes)
	if name := p.plan.Scheduler.Image; replicas > 1 && image.IsLocal(name) {
		p.warn("image %s is not in a registry: load it on each of the %d nodes", name, p.loadedOn(replicas, nodes))
	}
	p.plan.Scheduler.Replicas = int32(replicas)
	return nil
}

// loadedOn returns the number of nodes that need an image that is in no registry: all that may run
// a replica, if they are known.
func (p *planner) loadedOn(replicas int, nodes []inspect.ControlPlaneNode) int {
	switch {
	case len(nodes) > 0:
		return len(nodes)
	case p.Cluster != nil && len(p.request.Spec.NodeSelector) == 0:
		return max(replicas, p.Cluster.Nodes.Count)
	}
	return replicas
}

// nodesOfImage returns the control-plane nodes that can run the image, and warns about the others.
func (p *planner) nodesOfImage() (nodes []inspect.ControlPlaneNode, err error) {
	architectures, all := p.plan.Scheduler.Architectures, p.Cluster.ControlPlane.Labelled()
	if len(architectures) == 0 {
		return all, nil
	}
	var others []string
	for _, node := range all {
		if node.Architecture == "" || slices.Contains(architectures, node.Architecture) {
			nodes = append(nodes, node)
		} else {
			others = append(others, fmt.Sprintf("%s (%s)", node.Name, node.Architecture))
		}
	}
	switch {
	case len(others) > 0 && len(nodes) == 0:
		return nil, problem.Invalidf("build an image for their platform: see --platform of `pmk-sched build`",
			"image %s is for %s, and no control-plane node is: %s", p.plan.Scheduler.Image,
			strings.Join(architectures, ", "), strings.Join(others, ", "))
	case len(others) > 0:
		p.warn("image %s is for %s: control-plane nodes without a replica: %s", p.plan.Scheduler.Image,
			strings.Join(architectures, ", "), strings.Join(others, ", "))
	}
	return nodes, nil
}

// countShortage counts the replicas that start when a control-plane node is ready again: on the
// host network another node has no room for them. A rollout must not wait for them.
func (p *planner) countShortage(replicas int, nodes []inspect.ControlPlaneNode) {
	var away []string
	for _, node := range nodes {
		if !node.Ready || node.Unschedulable {
			away = append(away, node.Name)
		}
	}
	shortage := min(len(away), max(0, replicas-(len(nodes)-len(away))))
	if shortage == 0 || !p.plan.Scheduler.Credentials.HostNetwork() {
		return
	}
	p.plan.Scheduler.Shortage = shortage
	p.warn("%d of %d replicas start when their nodes are ready: %s not ready or cordoned", shortage, replicas,
		strings.Join(away, ", "))
}
