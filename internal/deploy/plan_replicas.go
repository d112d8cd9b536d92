package deploy

import "strings"

// chooseReplicas chooses the replicas of the user, else one for each control-plane node, or two if
// the control plane is outside of the cluster. Leader election is always on, so that several
// replicas are safe.
func (p *planner) chooseReplicas() error {
	replicas := 1
	counted := p.info != nil && !p.hosted() && !p.o.AnyNode && len(p.o.NodeSelector) == 0
	switch {
	case p.o.Replicas > 0:
		replicas = p.o.Replicas
		if counted && replicas > len(p.info.ControlPlane.Labelled()) {
			p.warn("%d replicas for %d control-plane nodes: on the host network each needs its own node", replicas,
				len(p.info.ControlPlane.Labelled()))
		}
	case counted:
		replicas = max(1, len(p.info.ControlPlane.Labelled()))
		p.note("replicas %d: one for each control-plane node", replicas)
	case p.hosted() && len(p.o.NodeSelector) == 0:
		replicas = min(2, p.info.Nodes.Count)
		p.note("replicas %d: of %d nodes, on different nodes and in different zones", replicas, p.info.Nodes.Count)
	}
	if counted {
		p.countShortage(replicas)
	}
	if image := p.plan.Scheduler.Image; replicas > 1 && strings.HasPrefix(image, "localhost/") {
		p.warn("image %s is not in a registry: load it on each of the %d nodes", image, replicas)
	}
	p.plan.Scheduler.Replicas = int32(replicas)
	return nil
}

// countShortage counts the replicas that start when a control-plane node is ready again: on the
// host network another node has no room for them. A rollout must not wait for them.
func (p *planner) countShortage(replicas int) {
	var away []string
	nodes := p.info.ControlPlane.Labelled()
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
