package kubeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NodeRejection returns why a node accepts no pod with these tolerations, as a predicate ("is
// cordoned"). It is empty if the node accepts the pod.
func NodeRejection(node *corev1.Node, tolerations []corev1.Toleration) string {
	if node.Spec.Unschedulable &&
		!Tolerates(tolerations, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "is cordoned"
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !Tolerates(tolerations, taint) {
			return "has the taint " + taint.ToString()
		}
	}
	if !NodeReady(node) {
		return "is not ready"
	}
	return ""
}

// Tolerates reports whether one of the tolerations tolerates a taint, as in k8s.io/api/core/v1: an
// empty key with Exists matches all, an empty effect matches all effects.
func Tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		effect := t.Effect == "" || t.Effect == taint.Effect
		key := t.Key == taint.Key || t.Key == "" && t.Operator == corev1.TolerationOpExists
		value := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		return effect && key && value
	})
}

// NodesOf returns the labels that a node must have for a pod: the pod's node selector, and its
// required node affinity if that has a single term, as in pmk-sched's pods.
func NodesOf(pod *corev1.PodSpec) (labels.Selector, error) {
	needed := &metav1.LabelSelector{MatchLabels: pod.NodeSelector}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil &&
		pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(
			terms) == 1 {
			for _, e := range terms[0].MatchExpressions {
				needed.MatchExpressions = append(needed.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
				})
			}
		}
	}
	return metav1.LabelSelectorAsSelector(needed)
}

// NodeAway reports whether a node accepts no new pods for now: it is not ready or cordoned.
func NodeAway(node *corev1.Node) bool {
	return !NodeReady(node) || node.Spec.Unschedulable
}

// NodeReady reports whether a node's condition Ready is true.
func NodeReady(node *corev1.Node) bool {
	c := ReadyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

// ReadyCondition returns a node's condition Ready, or nil.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}
