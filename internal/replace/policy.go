package replace

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
)

// The flags with which a scheduler at 1.20–1.22 reads a Policy.
const (
	policyFlag          = "policy-configmap"
	policyNamespaceFlag = "policy-configmap-namespace"
	policyFileFlag      = "policy-config-file"
	policyLegacyFlag    = "use-legacy-policy-config"

	policyStem = corev1.DefaultSchedulerName + "-policy"
)

// checkPolicyFlags refuses a manifest whose scheduler reads a Policy, which overrides every
// configuration, or would read another Policy than the Policy to be written.
func (p *planner) checkPolicyFlags(s *scheduler) error {
	reads := p.request.Spec.Configuration.PolicyConfigMap
	for _, name := range []string{policyFlag, policyFileFlag} {
		value, given := staticpod.Flag(s.args, name)
		if given && value != "" && !reads {
			return problem.Invalidf(
				"give that Policy with --policy-configmap and --config, remove the flag from the manifest, or run `pmk-sched "+
					"restore` first if pmk-sched added it",
				"the scheduler reads a Policy (--%s=%s), which overrides a configuration", name, value)
		}
	}
	if legacy, _ := staticpod.Flag(s.args, policyLegacyFlag); reads && legacy == "true" {
		return problem.Invalidf("remove it from the manifest", "with --%s the scheduler reads no Policy from a ConfigMap",
			policyLegacyFlag)
	}
	if namespace, given := staticpod.Flag(s.args, policyNamespaceFlag); reads && given &&
		namespace != metav1.NamespaceSystem {
		return problem.Invalidf("remove it from the manifest", "--%s of the scheduler: expected %s, got %s",
			policyNamespaceFlag, metav1.NamespaceSystem, namespace)
	}
	if reads && s.layout.EnvFile != "" {
		p.warnf("%s omits --%s when it rewrites the manifest, and the scheduler then reads no Policy", s.layout.Rewriter,
			policyFlag)
	}
	return nil
}

// policyMap returns the ConfigMap with the Policy, or nil.
func policyMap(rendered *profiles.Rendered) *corev1.ConfigMap {
	if len(rendered.Policy) == 0 {
		return nil
	}
	return manifest.PolicyConfigMap(corev1.DefaultSchedulerName, metav1.NamespaceSystem,
		ownership.Labels(corev1.DefaultSchedulerName), rendered.Policy)
}

// withPolicyFlag returns the current manifest, with the Policy's ConfigMap if there is one.
func withPolicyFlag(s *scheduler, rendered *profiles.Rendered) (*staticpod.Manifest, error) {
	policy := policyMap(rendered)
	if policy == nil {
		return s.manifest, nil
	}
	text, err := s.manifest.Apply(staticpod.Change{Container: schedulerContainer, Program: schedulerContainer,
		Flag: policyFlag, Config: policy.Name})
	if err != nil {
		return nil, err
	}
	return staticpod.Parse(s.layout.Manifest, text)
}

// policyObjects returns the Policy's ConfigMap and the permission to read it, which a scheduler
// does not have.
func (p *planner) policyObjects(rendered *profiles.Rendered) ([]*unstructured.Unstructured, error) {
	policy := policyMap(rendered)
	if policy == nil {
		return nil, nil
	}
	o := p.permissions(nil)
	o.PolicyConfigMap = policy.Name
	p.notef("ConfigMap %s/%s has the Policy; %s can read it", metav1.NamespaceSystem, policy.Name, o.Subject.Name)
	return kubeapi.Unstructured(policy, rbac.PolicyRole(o), rbac.PolicyRoleBinding(o))
}

// stalePolicies returns the objects of policyObjects, from this and earlier replacements.
func (d Deps) stalePolicies(ctx context.Context) ([]*unstructured.Unstructured, error) {
	list, err := d.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{
			MatchLabels: ownership.Labels(corev1.DefaultSchedulerName),
		})})
	if err != nil {
		return nil, kubeapi.Explain("list ConfigMaps in "+metav1.NamespaceSystem, err)
	}
	var stale []*unstructured.Unstructured
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, policyStem+"-") {
			stale = append(stale, reference("v1", "ConfigMap", metav1.NamespaceSystem, c.Name))
		}
	}
	if len(stale) > 0 {
		stale = append(stale, reference(rbacVersion, "RoleBinding", metav1.NamespaceSystem, policyStem),
			reference(rbacVersion, "Role", metav1.NamespaceSystem, policyStem))
	}
	return stale, nil
}
