package ask

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// admit returns a pod from a manifest as the API server creates it: with its defaults, and changed
// by the admission plugins that every API server has. refused is the reason why these plugins would
// refuse it. The error is about the user's input (package problem).
func (c *classes) admit(fields object) (admitted object, refused string, err error) {
	namespace, name := text(child(fields, "metadata"), "namespace"), text(child(fields, "metadata"), "name")
	pod := &corev1.Pod{}
	if err := snapshot.Convert(fields, pod); err != nil {
		return nil, "", problem.Invalidf("", "pod %s/%s: %w", namespace, name, err)
	}
	given := pod.DeepCopy()
	c.setDefaults(pod)
	if refused, err = c.setPriority(pod); err != nil || refused != "" {
		return fields, refused, err
	}
	if refused, err = c.applyRuntimeClass(pod); err != nil || refused != "" {
		return fields, refused, err
	}
	tolerateNodeFailures(pod)
	if refused = c.applyLimits(pod); refused != "" {
		return fields, refused, nil
	}
	if err := checkRequests(pod); err != nil {
		return nil, "", err
	}
	admitted, err = merge(fields, given, pod)
	return admitted, "", err
}

// setDefaults sets the defaults that schedulers read (SetDefaults_Pod and others in
// pkg/apis/core/v1/defaults.go).
func (c *classes) setDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			one := &containers[i]
			setRequests(&one.Resources)
			for j := range one.Ports {
				port := &one.Ports[j]
				if port.Protocol == "" {
					port.Protocol = corev1.ProtocolTCP
				}
				if spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	gates := c.release.Gates()
	if g := gates["PodLevelResources"]; g.Exists && g.Default && spec.Resources != nil {
		setPodRequests(spec)
	} else {
		spec.Resources = nil
	}
	if gates["MatchLabelKeysInPodTopologySpread"].Default {
		mergeSpreadKeys(pod)
	}
	if gates["MatchLabelKeysInPodAffinity"].Default {
		mergeAffinityKeys(pod)
	}
}

// setRequests sets the requests for which there is only a limit.
func setRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// setPodRequests sets the pod's own requests for which it has a limit: the sum of the containers'
// requests if they have some, or the limit (defaultPodRequests).
func setPodRequests(spec *corev1.PodSpec) {
	sums := corev1.ResourceList{}
	for i := range spec.Containers {
		for name, amount := range spec.Containers[i].Resources.Requests {
			sum := sums[name]
			sum.Add(amount)
			sums[name] = sum
		}
	}
	for name, limit := range spec.Resources.Limits {
		if _, ok := spec.Resources.Requests[name]; ok {
			continue
		}
		if spec.Resources.Requests == nil {
			spec.Resources.Requests = corev1.ResourceList{}
		}
		if sum, ok := sums[name]; ok {
			limit = sum
		}
		spec.Resources.Requests[name] = limit.DeepCopy()
	}
}

// mergeSpreadKeys adds the labels of matchLabelKeys to the selectors of spread constraints, which
// schedulers do too before the API server does.
func mergeSpreadKeys(pod *corev1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		constraint.LabelSelector = withKeys(constraint.LabelSelector, pod.Labels, constraint.MatchLabelKeys,
			metav1.LabelSelectorOpIn)
	}
}

// mergeAffinityKeys adds the labels of matchLabelKeys and mismatchLabelKeys to the selectors of
// affinity terms (applyMatchLabelKeysAndMismatchLabelKeys in pkg/registry/core/pod).
func mergeAffinityKeys(pod *corev1.Pod) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	merge := func(terms []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm) {
		all := make([]*corev1.PodAffinityTerm, 0, len(terms)+len(weighted))
		for i := range terms {
			all = append(all, &terms[i])
		}
		for i := range weighted {
			all = append(all, &weighted[i].PodAffinityTerm)
		}
		for _, term := range all {
			term.LabelSelector = withKeys(term.LabelSelector, pod.Labels, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
			term.LabelSelector = withKeys(term.LabelSelector, pod.Labels, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		merge(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		merge(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// withKeys returns a selector with requirements for labels of the pod.
func withKeys(
	selector *metav1.LabelSelector, labels map[string]string, keys []string, operator metav1.LabelSelectorOperator,
) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
	return selector
}

// tolerateNodeFailures adds the tolerations that pods have by default
// (plugin/pkg/admission/defaulttolerationseconds).
func tolerateNodeFailures(pod *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if tolerates {
			continue
		}
		seconds := int64(300)
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
}

// merge returns the manifest with the fields of the specification that admission has changed. All
// others stay as they are, also those that this program does not know.
func merge(fields object, given, admitted *corev1.Pod) (object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&given.Spec)
	if err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&admitted.Spec)
	if err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	spec := maps.Clone(child(fields, "spec"))
	for field, value := range after {
		old, err := json.Marshal(before[field])
		if err != nil {
			return nil, fmt.Errorf("read pod: %w", err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("read pod: %w", err)
		}
		if string(old) != string(text) {
			spec[field] = value
		}
	}
	merged := maps.Clone(fields)
	merged["spec"] = spec
	return merged, nil
}
