package report

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are resource amounts by name: CPU in thousandths, other resources in their units.
type Amounts map[string]int64

// Node is a node with the pods on it.
type Node struct {
	Name, Zone             string
	Unschedulable          bool
	Allocatable, Requested Amounts
	Pods                   []Pod

	labels map[string]string
	known  bool
}

// Pod is a pod on a node.
type Pod struct {
	Namespace, Name string
	// Owner is its controller's kind and name.
	Owner    string
	Labels   map[string]string
	Requests Amounts
	// Fixed is set for pods that cannot move: DaemonSet pods and static pods.
	Fixed bool
}

// Utilization returns the requested part of a resource, 0 if the node has none.
func (n *Node) Utilization(resource string) float64 {
	if n.Allocatable[resource] == 0 {
		return 0
	}
	return float64(n.Requested[resource]) / float64(n.Allocatable[resource])
}

// Label returns a label's value, and whether the node has it.
func (n *Node) Label(key string) (string, bool) {
	value, ok := n.labels[key]
	return value, ok
}

// Empty reports whether the node has only pods that cannot move.
func (n *Node) Empty() bool {
	return !slices.ContainsFunc(n.Pods, func(p Pod) bool { return !p.Fixed })
}

// free returns how much of a resource is not requested.
func (n *Node) free(resource string) int64 {
	return max(n.Allocatable[resource]-n.Requested[resource], 0)
}

func (u *Usage) node(name string) *Node {
	if u.nodes == nil {
		u.nodes = map[string]*Node{}
	}
	if u.nodes[name] == nil {
		u.nodes[name] = &Node{Name: name, Allocatable: Amounts{}, Requested: Amounts{}}
	}
	return u.nodes[name]
}

// List returns the nodes by name, and their pods by namespace and name.
func (u *Usage) List() []*Node {
	all := make([]*Node, 0, len(u.nodes))
	for _, n := range u.nodes {
		if !n.known { // a pod names a node that is gone
			continue
		}
		slices.SortFunc(n.Pods, func(a, b Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// NewAmounts returns quantities as amounts.
func NewAmounts(list corev1.ResourceList) Amounts {
	all := Amounts{}
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			all[string(name)] = quantity.MilliValue()
		} else {
			all[string(name)] = quantity.Value()
		}
	}
	return all
}

// Amount formats a resource amount as Kubernetes does.
func Amount(name string, amount int64) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return strconv.FormatInt(amount, 10)
}

// zoneOf returns a node's zone, empty if it has none.
func zoneOf(node *corev1.Node) string {
	return cmp.Or(node.Labels[corev1.LabelTopologyZone], node.Labels[corev1.LabelFailureDomainBetaZone])
}
