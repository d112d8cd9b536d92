package preflight

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// objectPage is the number of nodes or pods that are read at once.
	objectPage = 250
	// fewNodes is the highest number of nodes for which each node's pods are listed. With more nodes
	// one list with all pods is read instead.
	fewNodes = 16
	// maxNames limits the nodes that a message lists.
	maxNames = 16
)

// controlPlaneNode fails unless a node accepts the pod and matches its node selector.
func (p *preflight) controlPlaneNode(ctx context.Context) (string, error) {
	var fit, reasons []string
	nodes, err := p.selectedNodes(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	for _, node := range nodes {
		if node.rejection != "" {
			reasons = append(reasons, node.name+" "+node.rejection)
		} else {
			fit = append(fit, node.name)
		}
	}
	switch {
	case len(fit) > 0:
		return listOf(fit, ", "), nil
	case len(reasons) > 0:
		return "", problem.Errorf("make a node ready and schedulable, see `kubectl describe node`; if the pod may run on a "+
			"node with a taint, list a toleration under spec.tolerations of pmk-sched.yaml",
			"no node accepts the pod: %s", listOf(reasons, "; "))
	}
	return "", problem.Errorf(
		"see `kubectl get nodes --show-labels`; a managed cluster has no control-plane nodes: select other nodes with "+
			"--node-selector",
		"no node has the label %s", p.nodes)
}

// onePlatform warns if nodes that accept the pod have several architectures: an image for one
// architecture does not start on the others.
func (p *preflight) onePlatform(ctx context.Context) (string, error) {
	counts := map[string]int{}
	nodes, err := p.selectedNodes(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	for _, node := range nodes {
		if node.rejection == "" && node.architecture != "" {
			counts["linux/"+node.architecture]++
		}
	}
	var platforms, counted []string
	for _, platform := range slices.Sorted(maps.Keys(counts)) {
		platforms = append(platforms, platform)
		counted = append(counted, fmt.Sprintf("%d %s", counts[platform], platform))
	}
	if len(platforms) < 2 {
		return strings.Join(platforms, ""), nil
	}
	return "", problem.Errorf(fmt.Sprintf("build an image for all of them with --platform %s, or select nodes of one "+
		"with --node-selector %s=%s", strings.Join(platforms, ","), corev1.LabelArchStable,
		strings.TrimPrefix(platforms[0], "linux/")),
		"the pod may run on nodes of several platforms (%s), and the platforms of image %s are unknown",
		strings.Join(counted, ", "), p.Image)
}

// listOf joins the first texts, and counts the others.
func listOf(texts []string, separator string) string {
	if more := len(texts) - maxNames; more > 0 {
		texts = append(slices.Clone(texts[:maxNames]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// selectedNode is a node that matches the pod's node selector, and why it rejects the pod, or "".
type selectedNode struct{ name, rejection, architecture string }

// selectedNodes returns the nodes that match the pod's node selector: on a hosted control plane
// they are all nodes in the cluster. They are read once for all checks.
func (p *preflight) selectedNodes(ctx context.Context) ([]selectedNode, error) {
	if p.selected != nil {
		return p.selected, nil
	}
	list := kubeapi.Retrying(p.retry, "list nodes", p.kube.CoreV1().Nodes().List)
	selected := []selectedNode{}
	for page, err := range kubeapi.Pages(ctx, list,
		metav1.ListOptions{LabelSelector: p.nodes.String(), Limit: objectPage}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			node := &page.Items[i]
			selected = append(selected, selectedNode{name: node.Name, architecture: node.Status.NodeInfo.Architecture,
				rejection: kubeapi.NodeRejection(node, p.pod.Spec.Tolerations)})
		}
	}
	p.selected = selected
	return selected, nil
}

// portFree fails if the scheduler's port is in use in the host's network of the selected nodes: by
// one of TakenPorts, or by a pod.
func (p *preflight) portFree(ctx context.Context) (string, error) {
	hint := "choose another with --port"
	if by, taken := p.TakenPorts[p.Port]; taken {
		return "", problem.Errorf(hint, "port %d is in use by %s", p.Port, by)
	}
	selected, err := p.selectedNodes(ctx)
	if err != nil {
		return "", unknownIfForbidden(err)
	}
	nodes := map[string]bool{}
	for _, node := range selected {
		nodes[node.name] = true
	}
	for _, selector := range podSelectors(nodes) {
		for list, err := range p.podsOf(ctx, selector) {
			if err != nil {
				return "", unknownIfForbidden(err)
			}
			for i := range list.Items {
				pod := &list.Items[i]
				if nodes[pod.Spec.NodeName] && pod.Labels[ownership.LabelInstance] != p.Name && usesHostPort(pod, p.Port) {
					return "", problem.Errorf(hint, "port %d of node %s is in use by Pod/%s/%s", p.Port, pod.Spec.NodeName,
						pod.Namespace, pod.Name)
				}
			}
		}
	}
	return "", nil
}

// podSelectors returns the field selectors for the lists that contain all pods on some nodes.
func podSelectors(nodes map[string]bool) []string {
	if len(nodes) > fewNodes {
		return []string{"spec.nodeName!="}
	}
	var selectors []string
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		selectors = append(selectors, fields.OneTermEqualSelector("spec.nodeName", node).String())
	}
	return selectors
}

func (p *preflight) podsOf(ctx context.Context, selector string) iter.Seq2[*corev1.PodList, error] {
	list := kubeapi.Retrying(p.retry, "list pods with "+selector, p.kube.CoreV1().Pods(metav1.NamespaceAll).List)
	return kubeapi.Pages(ctx, list, metav1.ListOptions{FieldSelector: selector, Limit: objectPage})
}

// usesHostPort reports whether a pod listens on a port on its node, according to its host ports or,
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
		for _, f := range versions.ParseFlags(slices.Concat(container.Command, container.Args)) {
			if (f.Name == "secure-port" || f.Name == "port") && f.Value == strconv.Itoa(port) {
				return true
			}
		}
	}
	return false
}
