package manifest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	masterTaint       = "node-role.kubernetes.io/master"
	controlPlaneTaint = "node-role.kubernetes.io/control-plane"
	// criticalTaint keeps all pods but the critical ones from nodes for cluster components, such as
	// the system node pools in AKS.
	criticalTaint = "CriticalAddonsOnly"
)

func (s Scheduler) tolerations() []corev1.Toleration {
	if s.Tolerations != nil {
		return s.Tolerations
	}
	return Tolerations(nil, nil)
}

// Tolerations returns the tolerations for control-plane nodes' usual taints, for CriticalAddonsOnly
// and for taints with the given keys, each with any value and effect: values are empty with kubeadm
// and "true" with PMK. The tolerations in others follow.
func Tolerations(taints []string, others []corev1.Toleration) []corev1.Toleration {
	tolerations := []corev1.Toleration{}
	keys := slices.Sorted(slices.Values(taints))
	for _, key := range slices.Concat([]string{masterTaint, controlPlaneTaint, criticalTaint}, keys) {
		tolerations = withToleration(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	for _, other := range others {
		tolerations = withToleration(tolerations, other)
	}
	return tolerations
}

// withToleration adds a toleration unless the list has it.
func withToleration(list []corev1.Toleration, added corev1.Toleration) []corev1.Toleration {
	if slices.ContainsFunc(list, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, added) }) {
		return list
	}
	return append(list, added)
}

// affinity selects the nodes and keeps the replicas apart.
func (s Scheduler) affinity() *corev1.Affinity {
	affinity := corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: s.nodeRequirements()}},
		},
	}}
	if s.Replicas > 1 && (!s.spreads() || s.Credentials.HostNetwork()) {
		affinity.PodAntiAffinity = s.apart()
	}
	return &affinity
}

// Simulated nodes have this label, by kwok's convention. They report every pod as running, and none
// runs.
const (
	simulatedLabel = "type"
	simulatedValue = "kwok"
)

// nodeRequirements returns the requirements from the node selector and the image. Without a node
// selector, they exclude simulated nodes, and Windows nodes, which managed clusters can have.
func (s Scheduler) nodeRequirements() (requirements []corev1.NodeSelectorRequirement) {
	if len(s.Architectures) > 0 {
		requirements = append(requirements, corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable,
			Operator: corev1.NodeSelectorOpIn, Values: s.Architectures})
	}
	if len(s.NodeSelector) == 0 {
		return append(requirements,
			corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn,
				Values: []string{"linux"}},
			corev1.NodeSelectorRequirement{Key: simulatedLabel, Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{simulatedValue}})
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		requirement := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
		if value := s.NodeSelector[key]; value != "" {
			requirement.Operator, requirement.Values = corev1.NodeSelectorOpIn, []string{value}
		}
		requirements = append(requirements, requirement)
	}
	return requirements
}

// apart puts each replica on a different node. It is required on the host network, where replicas
// share a port, and preferred elsewhere.
func (s Scheduler) apart() *corev1.PodAntiAffinity {
	term := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: s.SelectorLabels()},
		TopologyKey:   corev1.LabelHostname,
	}
	if s.Credentials.HostNetwork() {
		return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	}
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: term},
	}}
}

// spread puts replicas that may run on any node into different zones and on different nodes. A lost
// zone must not keep a replica from starting, and nodes may have no zone: the constraints are
// preferences. Unlike affinity, they do not count a pod that is being deleted
// (pkg/scheduler/framework/plugins/podtopologyspread).
func (s Scheduler) spread() []corev1.TopologySpreadConstraint {
	if !s.spreads() {
		return nil
	}
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: s.SelectorLabels()},
		})
	}
	return constraints
}
