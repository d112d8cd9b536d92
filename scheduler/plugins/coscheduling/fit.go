package coscheduling

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// shape is a pod that requests the same as count other pods, and that the same nodes can run.
type shape struct {
	pod     *corev1.Pod
	request amounts
	count   int
	// apart is set if no two of the pods can be on one node.
	apart bool
}

// shapesOf returns the shapes of pods. The pods in a group mostly have the same shape.
func shapesOf(pods []*corev1.Pod) (all []*shape) {
	for _, pod := range pods {
		request, apart, known := scheduler.PodRequests(pod), keepsApart(pod), false
		for _, s := range all {
			if known = s.apart == apart && reflect.DeepEqual(s.request, request) && sameNodes(&s.pod.Spec, &pod.Spec) &&
				reflect.DeepEqual(hostPorts(s.pod), hostPorts(pod)); known {
				s.count++
				break
			}
		}
		if !known {
			all = append(all, &shape{pod: pod, request: request, count: 1, apart: apart})
		}
	}
	return all
}

// keepsApart reports whether two pods like this one cannot be on one node: they need the same port
// of it, or anti-affinity forbids it.
func keepsApart(pod *corev1.Pod) bool {
	if len(hostPorts(pod)) > 0 {
		return true
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname || len(term.Namespaces) > 0 {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// hostPorts returns the ports of the node that a pod needs.
func hostPorts(pod *corev1.Pod) (all []corev1.ContainerPort) {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.HostPort > 0 {
				all = append(all, port)
			}
		}
	}
	return all
}

func sameNodes(a, b *corev1.PodSpec) bool {
	return a.NodeName == b.NodeName && reflect.DeepEqual(a.NodeSelector, b.NodeSelector) &&
		reflect.DeepEqual(a.Affinity, b.Affinity) && reflect.DeepEqual(a.Tolerations, b.Tolerations)
}

// placeable returns the number of a group's pods that may get a node: on each node as many as fit
// there, without the pods for which gone returns true. It is more than a group gets if pods with
// several shapes share nodes, or if other plugins reject nodes.
func placeable(nodes []scheduler.NodeInfo, shapes []*shape, gone func(*corev1.Pod) bool) (sum int) {
	for _, s := range shapes {
		sum += s.room(nodes, gone)
	}
	return sum
}

// usable returns the nodes that can run a pod with one of the shapes.
func usable(nodes []scheduler.NodeInfo, shapes []*shape) (all []scheduler.NodeInfo) {
	for _, node := range nodes {
		for _, s := range shapes {
			if canRun(&s.pod.Spec, node.Node()) {
				all = append(all, node)
				break
			}
		}
	}
	return all
}

// room returns the number of the shape's pods that may get a node.
func (s *shape) room(nodes []scheduler.NodeInfo, gone func(*corev1.Pod) bool) (sum int) {
	for _, node := range nodes {
		if sum >= s.count {
			return s.count
		}
		if canRun(&s.pod.Spec, node.Node()) {
			sum += s.roomOn(node, gone)
		}
	}
	if sum > s.count {
		return s.count
	}
	return sum
}

func (s *shape) roomOn(node scheduler.NodeInfo, gone func(*corev1.Pod) bool) int {
	allocatable, used := node.Allocatable(), node.Requested()
	most := int64(s.count)
	if s.apart {
		most = 1
	}
	var freed amounts
	if gone != nil {
		freed = requestedBy(node, gone)
	}
	for name, amount := range s.request { // above 0; one of them is the number of pods
		left := scheduler.Sum(allocatable.Amount(name)-used.Amount(name), freed[name])
		if fit := left / amount; fit < most {
			most = fit
		}
	}
	if most < 0 {
		return 0
	}
	return int(most)
}

// canRun reports whether the taints and labels of a node allow that it runs a pod.
func canRun(spec *corev1.PodSpec, node *corev1.Node) bool {
	if node == nil {
		return false
	}
	if node.Spec.Unschedulable && !tolerates(spec.Tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule}) {
		return false
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(spec.Tolerations, taint) {
			return false
		}
	}
	for key, value := range spec.NodeSelector {
		if has, ok := node.Labels[key]; !ok || has != value {
			return false
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if (len(term.MatchExpressions)+len(term.MatchFields) > 0) && matches(term.MatchExpressions, node.Labels) &&
			matches(term.MatchFields, map[string]string{"metadata.name": node.Name}) {
			return true
		}
	}
	return false
}

// tolerates reports whether a pod tolerates a taint. The method of Toleration has other parameters
// from release to release. An operator that is not known is taken to tolerate it.
func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Key != "" && t.Key != taint.Key || t.Effect != "" && t.Effect != taint.Effect {
			continue
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			if t.Value == taint.Value && t.Key != "" {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// matches reports whether values match all requirements. A requirement that cannot be read is
// taken to match: other plugins decide.
func matches(requirements []corev1.NodeSelectorRequirement, values map[string]string) bool {
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}
	for _, r := range requirements {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err == nil && !requirement.Matches(labels.Set(values)) {
			return false
		}
	}
	return true
}
