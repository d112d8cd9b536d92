package apply

import (
	"errors"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// admissionGroup is the API group of what registers routes.
const admissionGroup = "admissionregistration.k8s.io"

// errNoRoute is returned for a registration that does something else than a route.
var errNoRoute = errors.New("does something else than giving new pods the scheduler")

// checkWebhook permits one webhook for new pods, of the Service of pmk-sched's webhooks, whose
// failures are ignored.
func checkWebhook(c *admissionv1.MutatingWebhookConfiguration) error {
	if len(c.Webhooks) != 1 {
		return errNoRoute
	}
	hook := c.Webhooks[0]
	client := hook.ClientConfig
	ours := client.URL == nil && client.Service != nil && client.Service.Name == ownership.Admission
	if !ours || !forNewPods(hook.Rules) || !ignored(hook.FailurePolicy) {
		return errNoRoute
	}
	return nil
}

// checkPolicy permits the change of the scheduler of new pods to this one.
func (p *permitted) checkPolicy(policy *admissionv1.MutatingAdmissionPolicy) error {
	spec := policy.Spec
	if spec.ParamKind != nil || len(spec.Variables) > 0 || !ignored(spec.FailurePolicy) || len(spec.Mutations) != 1 ||
		spec.MatchConstraints == nil || len(spec.MatchConstraints.ResourceRules) != 1 ||
		len(spec.MatchConstraints.ResourceRules[0].ResourceNames) > 0 ||
		!forNewPods([]admissionv1.RuleWithOperations{spec.MatchConstraints.ResourceRules[0].RuleWithOperations}) {
		return errNoRoute
	}
	mutation := spec.Mutations[0]
	if mutation.JSONPatch != nil || mutation.ApplyConfiguration == nil ||
		mutation.ApplyConfiguration.Expression != ownership.RouteExpression(p.name) {
		return errNoRoute
	}
	return nil
}

// checkPolicyBinding permits the binding of the policy in the same revision.
func (p *permitted) checkPolicyBinding(b *admissionv1.MutatingAdmissionPolicyBinding) error {
	want := admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ownership.RouteName(p.name)}
	if !reflect.DeepEqual(b.Spec, want) {
		return fmt.Errorf("binds %.100q", b.Spec.PolicyName)
	}
	return nil
}

// forNewPods reports whether the only rule is for new pods.
func forNewPods(rules []admissionv1.RuleWithOperations) bool {
	if len(rules) != 1 {
		return false
	}
	rule := rules[0]
	rule.Scope = nil
	return reflect.DeepEqual(rule, admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	})
}

func ignored(policy *admissionv1.FailurePolicyType) bool {
	return policy != nil && *policy == admissionv1.Ignore
}
