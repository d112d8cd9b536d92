package kubeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NodeRejection returns why a node accepts no pod with these tolerations, as a predicate ("is cordoned"). It is empty if the
// node accepts the pod.
func NodeRejection(node *corev1.Node, tolerations []corev1.Toleration) string {
	if node.Spec.Unschedulable && !tolerates(tolerations, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "is cordoned"
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(tolerations, taint) {
			return "has the taint " + taint.ToString()
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "is not ready"
}

// tolerates follows k8s.io/api/core/v1 Toleration: an empty key with Exists matches all, an empty effect matches all effects.
func tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		effect := t.Effect == "" || t.Effect == taint.Effect
		key := t.Key == taint.Key || t.Key == "" && t.Operator == corev1.TolerationOpExists
		value := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		return effect && key && value
	})
}
