package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	componentresource "k8s.io/component-helpers/resource"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// Usage is the pods' resource usage on a node.
type Usage struct {
	Requests corev1.ResourceList
	Pods     int
	// Ports are the host ports, as protocol/port, with the pod that uses each.
	Ports map[string]string
	// Terminating are the pods that are being deleted. Lower is the number of pods with a lower
	// priority than the explained pod.
	Terminating []string
	Lower       int
}

// Add adds a pod on the node. Pods that have ended use nothing.
func (u *Usage) Add(pod, explained *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	if u.Requests == nil {
		u.Requests, u.Ports = corev1.ResourceList{}, map[string]string{}
	}
	u.Pods++
	for name, quantity := range componentresource.PodRequests(pod,
		componentresource.PodResourcesOptions{UseStatusResources: true}) {
		sum := u.Requests[name]
		sum.Add(quantity)
		u.Requests[name] = sum
	}
	for _, port := range hostPorts(pod) {
		u.Ports[port] = pod.Namespace + "/" + pod.Name
	}
	if pod.DeletionTimestamp != nil {
		u.Terminating = append(u.Terminating, pod.Namespace+"/"+pod.Name)
	}
	if explained != nil && schedulinghelpers.PodPriority(pod) < schedulinghelpers.PodPriority(explained) {
		u.Lower++
	}
}

// hostPorts returns a pod's host ports, as protocol/port. As for schedulers, init containers count
// if they run as long as the pod. Addresses are left out: few pods name one.
func hostPorts(pod *corev1.Pod) []string {
	var ports []string
	lasting := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	for _, c := range slices.Concat(pod.Spec.Containers, lasting) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, fmt.Sprintf("%s/%d", cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort))
			}
		}
	}
	return ports
}

// shortage is the missing amount of a resource on a node.
type shortage struct {
	node                       string
	lacks, capacity, requested resource.Quantity
}

// tooSmall reports whether the pod would not fit on the node even without other pods.
func (s shortage) tooSmall() bool { return s.requested.Cmp(s.capacity) > 0 }

// shortages returns the amounts that a node lacks for a pod, by resource.
func shortages(pod *corev1.Pod, node *corev1.Node, used *Usage) map[string]shortage {
	found := map[string]shortage{}
	requests := componentresource.PodRequests(pod, componentresource.PodResourcesOptions{})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for name, lacks := range requests {
		if lacks.IsZero() {
			continue
		}
		allocatable, requested := node.Status.Allocatable[name], lacks.DeepCopy()
		lacks.Sub(allocatable)
		if used != nil {
			lacks.Add(used.of(name))
		}
		if lacks.Sign() > 0 {
			found[string(name)] = shortage{node: node.Name, lacks: lacks, capacity: allocatable, requested: requested}
		}
	}
	return found
}

func (u *Usage) of(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods {
		return *resource.NewQuantity(int64(u.Pods), resource.DecimalSI)
	}
	return u.Requests[name]
}

// shortText describes nodes' shortages: "2 nodes lack 500m CPU, 1 node lacks 1.5".
func shortText(name string, short []shortage) string {
	amounts := map[string]int{}
	var order []shortage
	slices.SortStableFunc(short, func(a, b shortage) int { return a.lacks.Cmp(b.lacks) })
	for _, s := range short {
		if amounts[s.lacks.String()]++; amounts[s.lacks.String()] == 1 {
			order = append(order, s)
		}
	}
	var parts []string
	for i, s := range order {
		if i == maxNames {
			parts = append(parts, fmt.Sprintf("the others more, up to %s", amount(short[len(short)-1].lacks)))
			break
		}
		unit := ""
		if i == 0 {
			unit = " " + resourceName(name)
		}
		parts = append(parts, fmt.Sprintf("%s %s%s", plural.Phrase(amounts[s.lacks.String()], "node lacks", "nodes lack"),
			amount(s.lacks), unit))
	}
	return strings.Join(parts, ", ")
}

// shortFix returns a change that would make a pod fit on one of the nodes that lack a resource.
func shortFix(pod *corev1.Pod, name string, short []shortage) string {
	if name == string(corev1.ResourcePods) {
		return "remove a pod from node " + short[0].node + ", or raise maxPods of its kubelet"
	}
	requested := componentresource.PodRequests(pod, componentresource.PodResourcesOptions{})[corev1.ResourceName(name)]
	closest := slices.MinFunc(short, func(a, b shortage) int { return a.lacks.Cmp(b.lacks) })
	largest := slices.MaxFunc(short, func(a, b shortage) int { return a.capacity.Cmp(b.capacity) })
	if requested.Cmp(largest.capacity) > 0 {
		return fmt.Sprintf("the pod requests %s %s, and no node has more than %s: request less, or add a larger node",
			amount(requested), resourceName(name), amount(largest.capacity))
	}
	fits := requested.DeepCopy()
	fits.Sub(closest.lacks)
	if fits.Sign() <= 0 {
		return fmt.Sprintf("free %s %s on node %s, or add a node", amount(closest.lacks), resourceName(name), closest.node)
	}
	return fmt.Sprintf("free %s %s on node %s, request at most %s instead of %s, or add a node",
		amount(closest.lacks), resourceName(name), closest.node, amount(fits), amount(requested))
}

// amount returns a quantity with a point in place of more than 999 thousandths: 1.5, not 1500m.
func amount(q resource.Quantity) string {
	text := q.String()
	thousandths, ok := strings.CutSuffix(text, "m")
	if point := len(thousandths) - 3; ok && point > 0 {
		return strings.TrimRight(thousandths[:point]+"."+thousandths[point:], "0")
	}
	return text
}

// resourceName returns a resource's name in a sentence.
func resourceName(name string) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return "CPU"
	case corev1.ResourcePods:
		return "free place for pods"
	case corev1.ResourceEphemeralStorage:
		return "ephemeral storage"
	}
	return name
}
