package route

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Service is the name of the Service of pmk-sched's webhooks.
const Service = ownership.Admission

// WebhookSuffix follows the name of the scheduler in the name of a route's webhook.
const WebhookSuffix = ".route.pmk-sched.io"

// Registration is what the objects of a route depend on.
type Registration struct {
	Rule Rule
	// Release is the API server's release.
	Release versions.Release
	// PolicyAPI is the API in which the API server serves MutatingAdmissionPolicies, or empty: then
	// the webhook in WebhookNamespace routes the pods.
	PolicyAPI        string
	WebhookNamespace string
	// Labels of the objects.
	Labels map[string]string
}

// Name returns the name of the objects that register the route of a scheduler.
func Name(scheduler string) string { return ownership.RouteName(scheduler) }

// IsRegistration reports whether an object of a scheduler routes pods to it.
func IsRegistration(kind string) bool {
	return slices.Contains([]string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"MutatingWebhookConfiguration"}, kind)
}

// Objects returns the objects that register the route, in the order in which they are applied.
func Objects(r Registration) ([]runtime.Object, error) {
	rule, err := r.Rule.Encode()
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: Name(r.Rule.Scheduler), Labels: r.Labels,
		Annotations: map[string]string{AnnotationRule: rule}}
	if r.PolicyAPI == "" {
		return []runtime.Object{r.webhook(meta)}, nil
	}
	return []runtime.Object{r.policy(meta), r.binding(meta)}, nil
}

// policy is the same in the APIs v1beta1 and v1.
func (r Registration) policy(meta metav1.ObjectMeta) runtime.Object {
	ignore, equivalent := admissionv1.Ignore, admissionv1.Equivalent
	return &admissionv1.MutatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: r.PolicyAPI, Kind: "MutatingAdmissionPolicy"}, ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &ignore, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: r.namespaces(), ObjectSelector: r.pods(), MatchPolicy: &equivalent,
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: newPods()}},
			},
			MatchConditions: r.Rule.conditions(),
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: ownership.RouteExpression(r.Rule.Scheduler)},
			}},
		},
	}
}

func (r Registration) binding(meta metav1.ObjectMeta) runtime.Object {
	return &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: r.PolicyAPI, Kind: "MutatingAdmissionPolicyBinding"}, ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name},
	}
}

// webhook leaves out the path and the certificate authority, which `pmk-sched controller` sets.
func (r Registration) webhook(meta metav1.ObjectMeta) runtime.Object {
	ignore, equivalent, none := admissionv1.Ignore, admissionv1.Equivalent, admissionv1.SideEffectClassNone
	never, seconds := admissionv1.NeverReinvocationPolicy, int32(1)
	hook := admissionv1.MutatingWebhook{
		Name: r.Rule.Scheduler + WebhookSuffix,
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
			Namespace: r.WebhookNamespace, Name: Service}},
		Rules:             []admissionv1.RuleWithOperations{newPods()},
		NamespaceSelector: r.namespaces(), ObjectSelector: r.pods(), MatchPolicy: &equivalent,
		FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &seconds, ReinvocationPolicy: &never,
		AdmissionReviewVersions: []string{"v1"},
	}
	if r.Release.Rules().MatchConditions {
		hook.MatchConditions = r.Rule.conditions()
	}
	return &admissionv1.MutatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(),
			Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{hook},
	}
}

func newPods() admissionv1.RuleWithOperations {
	scope := admissionv1.NamespacedScope
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
			Scope: &scope},
	}
}

// pods returns the selector for pods. The pods of pmk-sched are not routed in any namespace: a
// scheduler that is lost could not start those that end its route.
func (r Registration) pods() *metav1.LabelSelector {
	made := r.Rule.Route.PodSelector.Selector()
	made.MatchExpressions = append(made.MatchExpressions, metav1.LabelSelectorRequirement{Key: ownership.LabelName,
		Operator: metav1.LabelSelectorOpNotIn, Values: []string{ownership.Admission, ownership.Controller,
			ownership.Extender, ownership.Scheduler}})
	return made
}

// namespaces returns the selector for namespaces. Before 1.21 no label has their names: the webhook
// compares them.
func (r Registration) namespaces() *metav1.LabelSelector {
	made := r.Rule.Route.NamespaceSelector.Selector()
	if !r.Release.Rules().NamespaceNames {
		return made
	}
	of := func(operator metav1.LabelSelectorOperator, names []string) {
		made.MatchExpressions = append(made.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: operator, Values: names})
	}
	of(metav1.LabelSelectorOpNotIn, r.Rule.excluded())
	if len(r.Rule.Route.Namespaces) > 0 {
		of(metav1.LabelSelectorOpIn, r.Rule.Route.Namespaces)
	}
	return made
}

// conditions are what [Rule.Routes] checks besides the namespace, in CEL.
func (r Rule) conditions() []admissionv1.MatchCondition {
	all := []admissionv1.MatchCondition{
		{Name: "names-no-scheduler", Expression: fmt.Sprintf(
			`!has(object.spec.schedulerName) || object.spec.schedulerName in ["", %q]`, corev1.DefaultSchedulerName)},
		{Name: "has-no-node", Expression: `!has(object.spec.nodeName) || object.spec.nodeName == ""`},
		{Name: "is-of-no-daemonset", Expression: `!has(object.metadata.ownerReferences) || ` +
			`!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && o.kind == "DaemonSet")`},
	}
	all = append(all, shareConditions(r.Route.ShareOrDefault())...)
	if names := r.Route.Resources; len(names) > 0 {
		var quoted []string
		for _, name := range names {
			quoted = append(quoted, fmt.Sprintf("%q", name))
		}
		requests := fmt.Sprintf(`exists(c, has(c.resources) && has(c.resources.requests) && `+
			`c.resources.requests.exists(name, name in [%s]))`, strings.Join(quoted, ", "))
		all = append(all, admissionv1.MatchCondition{Name: "requests-a-resource", Expression: `object.spec.containers.` +
			requests + ` || has(object.spec.initContainers) && object.spec.initContainers.` + requests})
	}
	return all
}
