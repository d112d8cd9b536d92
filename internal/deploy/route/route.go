// Package route makes new pods use a scheduler that they do not name: the objects that register it
// with the API server, and the decision about one pod. It does no I/O.
//
// A release that serves MutatingAdmissionPolicies evaluates the rule itself; for an earlier one the
// webhook of pmk-sched does, with [Rule.Routes]. Both leave a pod as it is if anything fails.
package route

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// Annotation on a pod is the scheduler that it was routed to.
	Annotation = ownership.AnnotationRoute
	// AnnotationRule on a registration is its [Rule].
	AnnotationRule = "pmk-sched.io/route-rule"
)

// Rule is a route with the scheduler that it leads to.
type Rule struct {
	// Scheduler is the name that routed pods get in spec.schedulerName.
	Scheduler string `json:"scheduler"`
	// Namespace has the scheduler's own pods, which are never routed.
	Namespace string `json:"namespace"`
	// Lease is the lease of its leader election, namespace/name, or empty without one.
	Lease string `json:"lease,omitempty"`
	// Route selects the pods.
	Route v1alpha1.Route `json:"route"`
}

// Encode returns the rule for [AnnotationRule].
func (r Rule) Encode() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the route of scheduler %s: %w", r.Scheduler, err)
	}
	return string(text), nil
}

// Decode returns the rule in the annotations of a registration.
func Decode(annotations map[string]string) (Rule, error) {
	var r Rule
	if err := json.Unmarshal([]byte(annotations[AnnotationRule]), &r); err != nil {
		return Rule{}, fmt.Errorf("decode the annotation %s: %w", AnnotationRule, err)
	}
	if r.Scheduler == "" {
		return Rule{}, fmt.Errorf("the annotation %s names no scheduler", AnnotationRule)
	}
	return r, nil
}

// excluded returns the namespaces whose pods are never routed.
func (r Rule) excluded() []string {
	return slices.Compact([]string{metav1.NamespaceSystem, r.Namespace})
}

// Routes reports whether a new pod in a namespace is routed. It trusts the API server to have
// matched the selectors of the registration.
func (r Rule) Routes(namespace string, pod *corev1.Pod) bool {
	named := r.Route.Namespaces
	return !slices.Contains(r.excluded(), namespace) && (len(named) == 0 || slices.Contains(named, namespace)) &&
		(pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName) &&
		pod.Spec.NodeName == "" && !ofDaemonSet(pod) && inShare(pod, r.Route.ShareOrDefault()) &&
		requestsOne(pod, r.Route.Resources)
}

func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// requestsOne reports whether a container requests one of the resources, or none is given.
func requestsOne(pod *corev1.Pod, resources []string) bool {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for name := range c.Resources.Requests {
			if slices.Contains(resources, string(name)) {
				return true
			}
		}
	}
	return len(resources) == 0
}
