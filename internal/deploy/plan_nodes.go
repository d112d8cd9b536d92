package deploy

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// chooseNodes chooses the control-plane nodes' label.
func (p *planner) chooseNodes() error {
	selected := len(p.request.Spec.NodeSelector) > 0
	switch {
	case selected:
		p.plan.Scheduler.NodeSelector = maps.Clone(p.request.Spec.NodeSelector)
	case p.request.Spec.AnyNode && p.plan.Scheduler.Credentials.Mode != CredentialsServiceAccount:
		return problem.Invalidf("add --credentials serviceaccount",
			"--node-selector any needs --credentials serviceaccount: other nodes do not have the credentials of this one")
	case p.request.Spec.AnyNode:
		p.note("nodes: any")
	case p.hosted():
		p.note("nodes: any, since none is a control-plane node; --node-selector selects others")
	case p.Cluster == nil:
		p.plan.Scheduler.NodeSelector = map[string]string{defaultControlPlaneLabel: ""}
		p.warn("without a cluster, control-plane nodes are assumed to have the label %s", defaultControlPlaneLabel)
	case p.Cluster.ControlPlane.LabelKey == "" && p.Cluster.Nodes.Count == 0:
		return problem.Errorf(
			"use a kubeconfig with permission to list nodes, or select the nodes with --node-selector KEY=VALUE",
			"find the control-plane nodes: nodes could not be listed, see the warnings")
	case len(p.Cluster.ControlPlane.Nodes) > 0 && p.Cluster.ControlPlane.LabelKey == "":
		var names []string
		for _, node := range p.Cluster.ControlPlane.Nodes {
			names = append(names, node.Name)
		}
		return problem.Invalidf(
			"label them: `kubectl label nodes "+strings.Join(names, " ")+" "+defaultControlPlaneLabel+"=`; or select nodes with "+
				"--node-selector KEY=VALUE", "the control-plane nodes %s have no label that selects them", strings.Join(names, ", "))
	case p.Cluster.ControlPlane.LabelKey == "":
		return problem.Invalidf(
			"select the nodes with --node-selector KEY=VALUE; --node-selector any lets the scheduler run on every node with "+
				"--credentials serviceaccount", "no node has a label of control-plane nodes, and the control plane is not hosted")
	default:
		// No value: nodes in one cluster may have the label with different values.
		p.plan.Scheduler.NodeSelector = map[string]string{p.Cluster.ControlPlane.LabelKey: ""}
		p.note("nodes with the label %s: the control-plane nodes", p.Cluster.ControlPlane.LabelKey)
	}
	var keys []string
	if p.Cluster != nil && !p.hosted() && !selected && !p.request.Spec.AnyNode {
		keys = p.controlPlaneTaints()
	}
	p.plan.Scheduler.Tolerations = manifest.Tolerations(keys, p.request.Spec.PodTolerations())
	return nil
}

// controlPlaneTaints returns the keys of the control-plane nodes' taints to tolerate, with a note
// for each taint that is not usual.
func (p *planner) controlPlaneTaints() (keys []string) {
	usual := manifest.Tolerations(nil, nil)
	for _, node := range p.Cluster.ControlPlane.Labelled() {
		for _, taint := range node.Taints {
			if !keepsPodsAway(taint) || slices.ContainsFunc(usual,
				func(t corev1.Toleration) bool { return t.Key == taint.Key }) {
				continue
			}
			if !slices.Contains(keys, taint.Key) {
				p.note("tolerates the taint %s of control-plane node %s", taint, node.Name)
			}
			keys = append(keys, taint.Key)
		}
	}
	return keys
}

// keepsPodsAway reports whether a taint keeps pods from its node for good. Taints with the prefixes
// of conditions, such as node.kubernetes.io/unreachable, are set and removed by controllers
// (k8s.io/api/core/v1/well_known_taints.go, k8s.io/cloud-provider/api/well_known_taints.go).
func keepsPodsAway(taint inspect.Taint) bool {
	condition := strings.HasPrefix(taint.Key, "node.kubernetes.io/") ||
		strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
	return !condition && taint.Effect != string(corev1.TaintEffectPreferNoSchedule)
}
