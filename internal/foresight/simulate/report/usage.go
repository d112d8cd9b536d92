package report

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentresource "k8s.io/component-helpers/resource"
)

// Usage sums up nodes' allocatable resources and the requests of the pods on them. The zero value
// is ready to use.
type Usage struct {
	Nodes, Pods int
	Devices     Devices
	allocatable corev1.ResourceList
	odd         oddRequests
	nodes       map[string]*Node
	pending     []Pod
}

// AddNode adds a node's allocatable resources.
func (u *Usage) AddNode(node *corev1.Node) {
	u.Nodes++
	u.allocatable = sum(u.allocatable, node.Status.Allocatable)
	n := u.node(node.Name)
	n.known, n.Unschedulable, n.Zone = true, node.Spec.Unschedulable, zoneOf(node)
	n.Allocatable, n.labels = NewAmounts(node.Status.Allocatable), node.Labels
}

// AddPod adds a pod's requests, as a scheduler counts them. The requests on a node that is not
// added are not part of the sums.
func (u *Usage) AddPod(pod *corev1.Pod) {
	u.Pods++
	requests := podRequests(pod)
	u.odd.add(pod, requests)
	n := u.node(pod.Spec.NodeName)
	p := newPod(pod)
	p.Requests = NewAmounts(requests)
	n.Pods = append(n.Pods, p)
	for name, amount := range p.Requests {
		n.Requested[name] += amount
	}
}

func podRequests(pod *corev1.Pod) corev1.ResourceList {
	requests := componentresource.PodRequests(pod, componentresource.PodResourcesOptions{UseStatusResources: true})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return requests
}

// PodAmounts returns a pod's requests, as a scheduler counts them.
func PodAmounts(pod *corev1.Pod) Amounts { return NewAmounts(podRequests(pod)) }

// IsFinished reports whether a pod has ended.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsFixed reports whether a pod cannot move: a DaemonSet pod or a static pod.
func IsFixed(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// AddPending adds a pod without a node, which does not count as one of the pods.
func (u *Usage) AddPending(pod *corev1.Pod) {
	u.odd.add(pod, podRequests(pod))
	u.pending = append(u.pending, newPod(pod))
}

// Pending returns the pods without a node.
func (u *Usage) Pending() []Pod { return u.pending }

// newPod returns a pod without its requests.
func newPod(pod *corev1.Pod) Pod {
	p := Pod{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		p.Owner, p.Fixed = owner.Kind+"/"+owner.Name, IsFixed(pod)
	}
	return p
}

func sum(total, more corev1.ResourceList) corev1.ResourceList {
	if total == nil {
		total = corev1.ResourceList{}
	}
	for name, quantity := range more {
		t := total[name]
		t.Add(quantity)
		total[name] = t
	}
	return total
}

// Compare returns the utilization of every resource that the nodes have, CPU, memory and pods
// first.
func Compare(before, after *Usage) []Utilization {
	var all []Utilization
	requestedBefore, requestedAfter := before.requested(), after.requested()
	for _, name := range Resources(before, after) {
		key := corev1.ResourceName(name)
		had, has := before.allocatable[key], after.allocatable[key]
		u := Utilization{
			Resource: name, Allocatable: had.String(), Before: part(name, requestedBefore[name], had),
			After: part(name, requestedAfter[name], has),
		}
		if had.Cmp(has) != 0 {
			u.AllocatableAfter = has.String()
		}
		all = append(all, u)
	}
	return all
}

// Resources returns the resources that nodes have: CPU, memory and pods first.
func Resources(states ...*Usage) []string {
	names := []string{}
	for _, u := range states {
		for name, quantity := range u.allocatable {
			if !quantity.IsZero() && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	slices.SortFunc(names, CompareResources)
	return names
}

// CompareResources orders resource names: CPU, memory and pods first.
func CompareResources(a, b string) int {
	first := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourcePods)}
	if at, bt := slices.Index(first, a), slices.Index(first, b); at >= 0 || bt >= 0 {
		return rank(at) - rank(bt)
	}
	return strings.Compare(a, b)
}

// rank orders elements outside a list (index -1) after its elements.
func rank(index int) int {
	if index < 0 {
		return 1 << 10
	}
	return index
}

// requested returns the requests on the nodes.
func (u *Usage) requested() Amounts {
	total := Amounts{}
	for _, n := range u.nodes {
		if !n.known {
			continue
		}
		for name, amount := range n.Requested {
			total[name] += amount
		}
	}
	return total
}

// part returns the requested part of a total.
func part(name string, requested int64, total resource.Quantity) float64 {
	if total.IsZero() {
		return 0
	}
	amount := float64(requested)
	if name == string(corev1.ResourceCPU) {
		amount /= 1000
	}
	return amount / total.AsApproximateFloat64()
}
