package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// refusal returns the reason why the API server does not admit a pod. It reports false for other
// errors: lack of permission, a webhook that fails or has no dry run, a proxy that forbids
// requests.
func refusal(err error) (string, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	s := status.Status()
	for _, text := range []string{deniedByWebhook, deniedByPolicy, noQuota} { // with any reason
		if strings.Contains(s.Message, text) {
			return s.Message, true
		}
	}
	var forbidden *kubeapi.ForbiddenError
	if errors.As(kubeapi.Explain("", err), &forbidden) && forbidden.Verb != "" {
		return "", false
	}
	about := s.Details != nil && (s.Details.Kind == "pods" || s.Details.Kind == "Pod")
	return s.Message, about && (s.Reason == metav1.StatusReasonForbidden || s.Reason == metav1.StatusReasonInvalid)
}

// Refusal texts (staging/src/k8s.io/apiserver/pkg/admission/plugin, plugin/pkg/admission;
// github.com/openshift/apiserver-library-go, pkg/securitycontextconstraints).
const (
	deniedByWebhook   = "denied the request"
	deniedByPolicy    = "denied request:"
	overQuota         = "exceeded quota"
	noQuota           = "insufficient quota to"
	noClassQuota      = noQuota + " match these scopes: [{PriorityClass"
	missingRequests   = "failed quota"
	noPriorityClass   = "no PriorityClass with name"
	podSecurity       = "violates PodSecurity"
	podSecurityPolicy = "PodSecurityPolicy"
	noConstraint      = "security context constraint"
	noOwner           = "cannot set an ownerRef"
)

// constraints are OpenShift's security context constraints that let a pod choose its user.
func constraints() []string { return []string{"nonroot-v2", "nonroot", "anyuid", "privileged"} }

// admissionHint returns what to do about a refusal, or "".
func (p *preflight) admissionHint(text string) string {
	const class = "name another class, or none, in spec.priorityClassName of pmk-sched.yaml"
	constraint := constraints()[0]
	if p.pod.Spec.HostNetwork {
		constraint = "privileged"
	}
	for _, known := range []struct{ text, hint string }{
		{noClassQuota, class + ", or create a ResourceQuota with this scope in namespace " + p.Namespace},
		{noPriorityClass, class},
		{missingRequests, "set spec.resources of pmk-sched.yaml"},
		{overQuota, "raise the quota, or use another namespace with -n"},
		{podSecurity, "use another namespace with -n, or --credentials serviceaccount, with which the pods meet the level " +
			"restricted"},
		{noConstraint, fmt.Sprintf("let its ServiceAccount use one that accepts user %d: `oc adm policy add-scc-to-user %s -z %s "+
			"-n %s`", p.user(), constraint, p.pod.Spec.ServiceAccountName, p.Namespace)},
	} {
		if strings.Contains(text, known.text) {
			return known.hint
		}
	}
	return ""
}

// user returns the user of the pod's processes.
func (p *preflight) user() int64 {
	if s := p.pod.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		return *s.RunAsUser
	}
	return 0
}

// explainQuotas adds to an error that no pod could be tried with what ResourceQuotas show: GKE
// limits the cluster's priority classes to namespaces with a ResourceQuota for them, as kube-system
// has.
func (p *preflight) explainQuotas(ctx context.Context, unknown error) error {
	class := p.pod.Spec.PriorityClassName
	if class == "" || p.Namespace == metav1.NamespaceSystem {
		return unknown
	}
	limited, err := p.quotaFor(ctx, metav1.NamespaceSystem, class)
	if err != nil || limited == "" {
		return unknown
	}
	if own, err := p.quotaFor(ctx, p.Namespace, class); err != nil || own != "" {
		return unknown
	}
	return fmt.Errorf("%w; ResourceQuota %s of kube-system is for the priority class %s, and none of namespace %s: if the "+
		"class is limited to such namespaces, %s", unknown, limited, class, p.Namespace, p.admissionHint(noClassQuota))
}

// quotaFor returns the name of a ResourceQuota in a namespace whose scope is a priority class, or
// "".
func (p *preflight) quotaFor(ctx context.Context, namespace, class string) (string, error) {
	list, err := kubeapi.List(ctx, p.retry, "list ResourceQuotas in namespace "+namespace,
		p.kube.CoreV1().ResourceQuotas(namespace).List, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, quota := range list.Items {
		if quota.Spec.ScopeSelector == nil {
			continue
		}
		for _, e := range quota.Spec.ScopeSelector.MatchExpressions {
			if e.ScopeName == corev1.ResourceQuotaScopePriorityClass && slices.Contains(e.Values, class) &&
				e.Operator == corev1.ScopeSelectorOpIn {
				return quota.Name, nil
			}
		}
	}
	return "", nil
}
