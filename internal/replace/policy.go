package replace

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
)

// The flags with which a scheduler of 1.20–1.22 reads a Policy.
const (
	policyFlag          = "policy-configmap"
	policyNamespaceFlag = "policy-configmap-namespace"
	policyFileFlag      = "policy-config-file"
	policyLegacyFlag    = "use-legacy-policy-config"

	policyStem = corev1.DefaultSchedulerName + "-policy"
)

// judgePolicyFlags refuses a manifest whose scheduler reads a Policy already, which
// goes before every configuration, or would read another than is asked for.
func (p *planner) judgePolicyFlags() error {
	for _, name := range []string{policyFlag, policyFileFlag} {
		value, given := staticpod.Flag(p.r.words, name)
		if given && value != "" && !p.o.PolicyConfigMap {
			return problem.Invalidf("say --policy-configmap and give that Policy with --config, take the flag out of the manifest, or run `pmk-sched restore` first where it is ours",
				"the scheduler reads a Policy (--%s=%s), which goes before a configuration", name, value)
		}
	}
	if legacy, _ := staticpod.Flag(p.r.words, policyLegacyFlag); p.o.PolicyConfigMap && legacy == "true" {
		return problem.Invalidf("take it out of the manifest", "with --%s the scheduler reads no Policy from a ConfigMap", policyLegacyFlag)
	}
	if namespace, given := staticpod.Flag(p.r.words, policyNamespaceFlag); p.o.PolicyConfigMap && given && namespace != metav1.NamespaceSystem {
		return problem.Invalidf("take it out of the manifest", "the scheduler looks for a Policy in %s (--%s), not in %s", namespace, policyNamespaceFlag, metav1.NamespaceSystem)
	}
	return nil
}

// render renders the configuration, and the Policy where one was asked for.
func (p *planner) render(r profiles.Request) (*profiles.Rendered, error) {
	if err := p.judgePolicyFlags(); err != nil {
		return nil, err
	}
	if !p.o.PolicyConfigMap {
		return profiles.Render(r)
	}
	if p.r.Layout.Name == "pmk" {
		p.warnOf("PMK's node agent leaves --%s out when it writes the manifest anew, and the scheduler then reads no Policy", policyFlag)
	}
	r.Extenders = p.o.Extenders
	return profiles.RenderPolicy(r)
}

// policyMap is the ConfigMap with the Policy; nil where there is none.
func (p *planner) policyMap() *corev1.ConfigMap {
	if len(p.rendered.Policy) == 0 {
		return nil
	}
	return manifest.PolicyConfigMap(corev1.DefaultSchedulerName, metav1.NamespaceSystem, kubeapi.OwnerLabels(corev1.DefaultSchedulerName), p.rendered.Policy)
}

// namePolicy has the manifest name the ConfigMap, before anything else of it is
// changed.
func (p *planner) namePolicy() error {
	policy := p.policyMap()
	if policy == nil {
		return nil
	}
	text, err := p.manifest.Apply(staticpod.Change{Container: schedulerContainer, Program: schedulerContainer, Flag: policyFlag, Config: policy.Name})
	if err != nil {
		return err
	}
	p.manifest, err = staticpod.Parse(p.r.Layout.Manifest, text)
	return err
}

// policyObjects are the ConfigMap, and the right to read it, which the scheduler
// does not have by itself.
func (p *planner) policyObjects() error {
	policy := p.policyMap()
	if policy == nil {
		return nil
	}
	o := pluginRules(cmp.Or(p.info.Credentials.User, schedulerUser), nil)
	o.PolicyConfigMap = policy.Name
	for _, object := range []runtime.Object{policy, rbac.PolicyRole(o), rbac.PolicyRoleBinding(o)} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("write the objects of the Policy: %w", err)
		}
		p.r.Rules = append(p.r.Rules, &unstructured.Unstructured{Object: content})
	}
	p.note("ConfigMap %s/%s holds the Policy; %s may read it", metav1.NamespaceSystem, policy.Name, o.Subject.Name)
	return nil
}

// doomedPolicies are the objects of policyObjects, of this and earlier replacements.
func (d Deps) doomedPolicies(ctx context.Context) ([]*unstructured.Unstructured, error) {
	labels := kubeapi.OwnerLabels(corev1.DefaultSchedulerName)
	list, err := d.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})})
	if err != nil {
		return nil, kubeapi.Explain("list ConfigMaps in "+metav1.NamespaceSystem, err)
	}
	var doomed []*unstructured.Unstructured
	add := func(version, kind, name string) {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		o.SetNamespace(metav1.NamespaceSystem)
		o.SetName(name)
		o.SetLabels(labels)
		doomed = append(doomed, o)
	}
	for _, held := range list.Items {
		if strings.HasPrefix(held.Name, policyStem+"-") {
			add("v1", "ConfigMap", held.Name)
		}
	}
	if len(doomed) > 0 {
		add("rbac.authorization.k8s.io/v1", "RoleBinding", policyStem)
		add("rbac.authorization.k8s.io/v1", "Role", policyStem)
	}
	return doomed, nil
}
