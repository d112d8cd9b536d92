package preflight

import (
	"context"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// maxNodes bounds how many nodes are inspected for their pods: control planes are small.
const maxNodes = 16

// controlPlaneNode fails unless a node accepts the pod and matches its node selector.
func (p *preflight) controlPlaneNode(ctx context.Context) (string, error) {
	nodes, err := p.selectedNodes(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	if len(nodes) == 0 {
		return "", problem.Errorf(
			"see `kubectl get nodes --show-labels`; a managed cluster has no control-plane nodes: select other nodes with "+
				"--node-selector",
			"no node has the label %s", p.nodes)
	}
	var fit, reasons []string
	for i := range nodes {
		if reason := kubeapi.NodeRejection(&nodes[i], p.pod.Spec.Tolerations); reason != "" {
			reasons = append(reasons, nodes[i].Name+" "+reason)
		} else {
			fit = append(fit, nodes[i].Name)
		}
	}
	if len(fit) == 0 {
		return "", problem.Errorf("make a node ready and schedulable, see `kubectl describe node`",
			"no node accepts the pod: %s", strings.Join(reasons, "; "))
	}
	return strings.Join(fit, ", "), nil
}

// selectedNodes returns the nodes that match the pod's node selector, at most maxNodes.
func (p *preflight) selectedNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := kubeapi.List(ctx, p.retry, "list nodes",
		p.kube.CoreV1().Nodes().List, metav1.ListOptions{LabelSelector: p.nodes.String(), Limit: maxNodes})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// portFree fails if the scheduler's port is in use in the host's network of the selected nodes: by
// one of TakenPorts, or by a pod.
func (p *preflight) portFree(ctx context.Context) (string, error) {
	hint := "choose another with --port"
	if by, taken := p.TakenPorts[p.Port]; taken {
		return "", problem.Errorf(hint, "port %d is in use by %s", p.Port, by)
	}
	nodes, err := p.selectedNodes(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	for i := range nodes {
		pods, err := p.podsOn(ctx, nodes[i].Name)
		if err != nil {
			return "", unknownIfForbidden(err)
		}
		for j := range pods {
			pod := &pods[j]
			if pod.Labels[ownership.LabelInstance] != p.Name && usesHostPort(pod, p.Port) {
				return "", problem.Errorf(hint, "port %d of node %s is in use by Pod/%s/%s", p.Port, nodes[i].Name, pod.Namespace,
					pod.Name)
			}
		}
	}
	return "", nil
}

func (p *preflight) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	selector := fields.OneTermEqualSelector("spec.nodeName", node)
	list, err := kubeapi.List(ctx, p.retry, "list pods on node "+node,
		p.kube.CoreV1().Pods(metav1.NamespaceAll).List, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// usesHostPort reports whether a pod listens on a port of its node, according to its host ports or,
// in the host's network, to the flags of Kubernetes components.
func usesHostPort(pod *corev1.Pod, port int) bool {
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if int(p.HostPort) == port {
				return true
			}
		}
		if !pod.Spec.HostNetwork {
			continue
		}
		for _, arg := range append(slices.Clone(container.Command), container.Args...) {
			flag, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if (flag == "secure-port" || flag == "port") && value == strconv.Itoa(port) {
				return true
			}
		}
	}
	return false
}
