package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// classes are the objects that an API server's admission applies to new pods and claims.
type classes struct {
	release    versions.Release
	priorities map[string]*schedulingv1.PriorityClass
	runtimes   map[string]*nodev1.RuntimeClass
	// storage is the name of the default StorageClass.
	storage string
	limits  []corev1.LimitRange // of the question's namespaces
}

// readClasses reads the classes of the cluster, and the LimitRanges in namespaces.
func readClasses(
	ctx context.Context, kube kubernetes.Interface, release versions.Release, namespaces []string,
) (*classes, error) {
	c := &classes{release: release, priorities: map[string]*schedulingv1.PriorityClass{},
		runtimes: map[string]*nodev1.RuntimeClass{}}
	for name, value := range map[string]int32{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000} {
		c.priorities[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	options := metav1.ListOptions{ResourceVersion: "0"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		list, err := kube.SchedulingV1().PriorityClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the PriorityClasses", err)
		}
		for i := range list.Items {
			c.priorities[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	})
	group.Go(func() error {
		list, err := kube.NodeV1().RuntimeClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the RuntimeClasses", err)
		}
		for i := range list.Items {
			c.runtimes[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	})
	group.Go(func() error {
		list, err := kube.StorageV1().StorageClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the StorageClasses", err)
		}
		c.storage = defaultStorageClass(list.Items)
		return nil
	})
	limits := make([][]corev1.LimitRange, len(namespaces))
	for i, namespace := range namespaces {
		group.Go(func() error {
			list, err := kube.CoreV1().LimitRanges(namespace).List(ctx, options)
			if err != nil {
				return kubeapi.Explain("read the LimitRanges", err)
			}
			limits[i] = list.Items
			return nil
		})
	}
	err := group.Wait()
	c.limits = slices.Concat(limits...)
	return c, err
}

// defaultStorageClass returns the newest default class, as the API server selects it.
func defaultStorageClass(all []storagev1.StorageClass) string {
	var found *storagev1.StorageClass
	for i := range all {
		class := &all[i]
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" &&
			class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		switch {
		case found == nil, found.CreationTimestamp.Before(&class.CreationTimestamp),
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name:
			found = class
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}

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

// setPriority sets the priority of the pod's class (plugin/pkg/admission/priority).
func (c *classes) setPriority(pod *corev1.Pod) (refused string, err error) {
	spec := &pod.Spec
	given := spec.Priority
	var class *schedulingv1.PriorityClass
	if spec.PriorityClassName == "" {
		class = c.defaultPriority()
	} else if class = c.priorities[spec.PriorityClassName]; class == nil {
		return "", problem.Invalidf("add its manifest to the cluster", "pod %s/%s: there is no PriorityClass %s", pod.Namespace,
			pod.Name, spec.PriorityClassName)
	}
	value, policy := int32(0), corev1.PreemptLowerPriority
	if class != nil {
		spec.PriorityClassName, value = class.Name, class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if given != nil && *given != value {
		return fmt.Sprintf("spec.priority %d is not that of its PriorityClass, %d", *given, value), nil
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy {
		return fmt.Sprintf("spec.preemptionPolicy %s is not that of its PriorityClass, %s", *spec.PreemptionPolicy, policy), nil
	}
	spec.Priority, spec.PreemptionPolicy = &value, &policy
	return "", nil
}

// defaultPriority returns the default class with the lowest value, or nil.
func (c *classes) defaultPriority() *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, class := range c.priorities {
		if class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// applyRuntimeClass sets the overhead and the nodes of the pod's RuntimeClass
// (plugin/pkg/admission/runtimeclass).
func (c *classes) applyRuntimeClass(pod *corev1.Pod) (refused string, err error) {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		return "", nil
	}
	class := c.runtimes[*pod.Spec.RuntimeClassName]
	if class == nil {
		return "", problem.Invalidf("add its manifest to the cluster", "pod %s/%s: there is no RuntimeClass %s", pod.Namespace,
			pod.Name, *pod.Spec.RuntimeClassName)
	}
	if class.Overhead != nil {
		pod.Spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return "", nil
	}
	for key, value := range class.Scheduling.NodeSelector {
		if have, ok := pod.Spec.NodeSelector[key]; ok && have != value {
			return fmt.Sprintf("its nodeSelector %s=%s conflicts with that of RuntimeClass %s", key, have, class.Name), nil
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		same := func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) }
		if !slices.ContainsFunc(pod.Spec.Tolerations, same) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return "", nil
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
