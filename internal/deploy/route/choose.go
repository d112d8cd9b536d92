package route

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Choose returns the scheduler that an API server with registrations of rules, in their order,
// gives a pod that is not created yet, or "". labelsOf returns the labels of the pod's namespace.
// The error is that of labelsOf, or says that a rule takes a share of such pods: the UID that their
// controller will have decides.
func Choose(rules []Rule, pod *corev1.Pod, labelsOf func() (labels.Set, error)) (scheduler string, err error) {
	for _, rule := range rules {
		share := rule.Route.ShareOrDefault()
		rule.Route.Share = nil
		selected, err := rule.selects(pod, labelsOf)
		switch {
		case err != nil:
			return "", err
		case !selected || share == 0 || share < v1alpha1.WholeShare && metav1.GetControllerOf(pod) == nil:
			continue
		case share < v1alpha1.WholeShare:
			return "", problem.Invalidf("", "the route to scheduler %s takes %d %% of such workloads", rule.Scheduler, share)
		}
		return rule.Scheduler, nil
	}
	return "", nil
}

// selects reports whether the pod is routed, with the selectors that an API server matches before
// it asks [Rule.Routes].
func (r Rule) selects(pod *corev1.Pod, labelsOf func() (labels.Set, error)) (bool, error) {
	pods, err := metav1.LabelSelectorAsSelector(Registration{Rule: r}.pods())
	if err != nil {
		return false, fmt.Errorf("read the pod selector of the route to scheduler %s: %w", r.Scheduler, err)
	}
	if !r.Routes(pod.Namespace, pod) || !pods.Matches(labels.Set(pod.Labels)) {
		return false, nil
	}
	if r.Route.NamespaceSelector == nil {
		return true, nil
	}
	namespaces, err := metav1.LabelSelectorAsSelector(r.Route.NamespaceSelector.Selector())
	if err != nil {
		return false, fmt.Errorf("read the namespace selector of the route to scheduler %s: %w", r.Scheduler, err)
	}
	of, err := labelsOf()
	return err == nil && namespaces.Matches(of), err
}
