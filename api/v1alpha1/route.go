package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Route makes new pods use the scheduler that name no scheduler of their own. It selects the pods
// for which every field that is set holds. Whatever it selects, it leaves alone pods that name
// another scheduler or have a node, pods of DaemonSets, and the pods in kube-system and in the
// scheduler's namespace.
type Route struct {
	// Namespaces are the names of the namespaces whose pods are routed.
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	// NamespaceSelector selects namespaces by their labels; {} selects all.
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty" yaml:"namespaceSelector"`
	// PodSelector selects pods by their labels; {} selects all.
	PodSelector *LabelSelector `json:"podSelector,omitempty" yaml:"podSelector"`
	// Resources are names of resources, such as nvidia.com/gpu: a pod is routed that requests one of
	// them.
	Resources []string `json:"resources,omitempty" yaml:"resources"`
	// Share is the percentage of the pods that are routed, 0 to 100: those of controllers whose UID
	// is in the first part of all UIDs, so that the pods of one controller are treated alike. Pods
	// without a controller are routed at 100 only. The default is 100.
	Share *int `json:"share,omitempty" yaml:"share" jsonschema:"minimum=0,maximum=100"`
	// OnFailure is what `pmk-sched controller` does, besides ending the route, with pods that wait for
	// the scheduler while no replica leads: Keep, or Release, which deletes those that their
	// controllers create again. The default is Keep.
	OnFailure string `json:"onFailure,omitempty" yaml:"onFailure" jsonschema:"enum=Keep,enum=Release"`
	// FailureAfter is the time without a leading replica after which `pmk-sched controller` ends the
	// route. The default is 30s.
	FailureAfter Duration `json:"failureAfter,omitempty" yaml:"failureAfter"`
}

// Values of [Route.OnFailure].
const (
	OnFailureKeep    = "Keep"
	OnFailureRelease = "Release"
)

// minFailureAfter is longer than a lease of kube-scheduler is valid: 15 seconds by default.
const minFailureAfter = 20 * time.Second

// FailureAfterOrDefault returns the time without a leading replica after which the route ends.
func (r *Route) FailureAfterOrDefault() time.Duration {
	return cmp.Or(time.Duration(r.FailureAfter), 30*time.Second)
}

// WholeShare is the share of a route that routes all pods that it selects.
const WholeShare = 100

// ShareOrDefault returns the percentage of the selected pods that are routed.
func (r *Route) ShareOrDefault() int {
	if r.Share == nil {
		return WholeShare
	}
	return *r.Share
}

// LabelSelector selects objects by their labels, as in Kubernetes.
type LabelSelector struct {
	// MatchLabels are labels that an object must have.
	MatchLabels map[string]string `json:"matchLabels,omitempty" yaml:"matchLabels"`
	// MatchExpressions are conditions that the labels of an object must meet.
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty" yaml:"matchExpressions"`
}

// LabelRequirement is a condition about one label.
type LabelRequirement struct {
	// Key of the label.
	Key string `json:"key" yaml:"key"`
	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator metav1.LabelSelectorOperator `json:"operator" yaml:"operator" jsonschema:"enum=In,enum=NotIn,enum=Exists,enum=DoesNotExist"`
	// Values for In and NotIn.
	Values []string `json:"values,omitempty" yaml:"values"`
}

// Selector returns the selector in Kubernetes' type. It selects everything if s is nil.
func (s *LabelSelector) Selector() *metav1.LabelSelector {
	made := &metav1.LabelSelector{}
	if s == nil {
		return made
	}
	made.MatchLabels = s.MatchLabels
	for _, e := range s.MatchExpressions {
		made.MatchExpressions = append(made.MatchExpressions, metav1.LabelSelectorRequirement(e))
	}
	return made
}

// ValidateRoute returns an error, with the field's path, for a route that selects nothing, or that
// no API server accepts.
func (s *CustomScheduler) ValidateRoute() error {
	if s.Spec.Route == nil {
		return nil
	}
	if err := s.Spec.Route.validate(s.Namespace); err != nil {
		err.text = "spec.route: " + err.text
		return err
	}
	return nil
}

func (r *Route) validate(namespace string) *Error {
	if len(r.Namespaces)+len(r.Resources) == 0 && r.NamespaceSelector == nil && r.PodSelector == nil {
		return &Error{text: "one of namespaces, namespaceSelector, podSelector and resources is required",
			hint: "namespaceSelector: {} selects the pods of all namespaces"}
	}
	for i, name := range r.Namespaces {
		switch {
		case len(validation.IsDNS1123Label(name)) > 0:
			return &Error{text: fmt.Sprintf("namespaces[%d]: invalid name %q", i, name)}
		case name == metav1.NamespaceSystem || name == namespace:
			return &Error{text: fmt.Sprintf("namespaces[%d]: the pods of %s are never routed", i, name),
				hint: "they include the scheduler's own, which another scheduler has to start"}
		}
	}
	for i, name := range r.Resources {
		if len(validation.IsQualifiedName(name)) > 0 {
			return &Error{text: fmt.Sprintf("resources[%d]: invalid name %q", i, name),
				hint: "write the name as in a pod's requests, such as nvidia.com/gpu"}
		}
	}
	for _, s := range []struct {
		field    string
		selector *LabelSelector
	}{{"namespaceSelector", r.NamespaceSelector}, {"podSelector", r.PodSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(s.selector.Selector()); err != nil {
			return &Error{text: fmt.Sprintf("%s: %v", s.field, err)}
		}
	}
	if share := r.ShareOrDefault(); share < 0 || share > WholeShare {
		return &Error{text: fmt.Sprintf("share: invalid value %d: must be between 0 and %d", share, WholeShare)}
	}
	if !slices.Contains([]string{"", OnFailureKeep, OnFailureRelease}, r.OnFailure) {
		return &Error{text: fmt.Sprintf("onFailure: invalid value %q: must be Keep or Release", r.OnFailure)}
	}
	if r.FailureAfterOrDefault() < minFailureAfter {
		return &Error{text: fmt.Sprintf("failureAfter: %s is too short", time.Duration(r.FailureAfter)),
			hint: fmt.Sprintf("use %s or more: a standby replica takes the lead about 15 seconds after the leader is lost",
				minFailureAfter)}
	}
	return nil
}
