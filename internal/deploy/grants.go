package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// grant is a permission that the objects of a scheduler or extender give it, for messages.
type grant struct {
	text string
	// parts are the smallest permissions in it. A grant is new if one of them is.
	parts []string
}

// granter finds the permissions of a scheduler or extender.
type granter struct{ namespace, name string }

// grants returns the permissions in objects: the roles and rules that their bindings grant, and
// what the pods can use from their node and from others' Secrets. Permissions that every scheduler
// has are not listed.
func (g granter) grants(objects []*unstructured.Unstructured) (list []grant) {
	rules := map[identity][]rbacv1.PolicyRule{}
	for _, o := range objects {
		var role rbacv1.ClusterRole // a Role has the same fields
		if strings.HasSuffix(o.GetKind(), "Role") && typed(o, &role) {
			rules[identify(o)] = role.Rules
		}
	}
	for _, o := range objects {
		var binding rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
		var deployment appsv1.Deployment
		switch {
		case strings.HasSuffix(o.GetKind(), "RoleBinding") && typed(o, &binding):
			role := identity{kind: o.GroupVersionKind().GroupKind(), name: binding.RoleRef.Name}
			if role.kind.Kind = binding.RoleRef.Kind; role.kind.Kind == "Role" {
				role.namespace = o.GetNamespace()
			}
			own, isOwn := rules[role]
			for _, s := range binding.Subjects {
				list = append(list, g.granted(o.GetNamespace(), s, binding.RoleRef, own, isOwn)...)
			}
		case o.GetKind() == "Deployment" && typed(o, &deployment):
			list = append(list, podGrants(&deployment, objects)...)
		}
	}
	return list
}

func typed(o *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}

// granted returns what a binding grants to one subject: each rule in an own role, or the role.
func (g granter) granted(namespace string, s rbacv1.Subject, role rbacv1.RoleRef, rules []rbacv1.PolicyRule,
	own bool) []grant {
	self := s.Kind == rbacv1.ServiceAccountKind && s.Namespace == g.namespace && s.Name == g.name ||
		s.Kind == rbacv1.UserKind && s.Name == "system:kube-scheduler"
	scope := "in the cluster"
	if namespace != "" {
		scope = "in namespace " + namespace
	}
	who := fmt.Sprintf("%s %s %s: ", s.Kind, strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"), scope)
	if self {
		who = scope + ": " // with any kind of credentials
	}
	if !own && self {
		return nil
	}
	if !own {
		text := who + role.Kind + " " + role.Name
		return []grant{{text, []string{text}}}
	}
	var list []grant
	for _, r := range rules {
		if !self || !g.isOwnData(r) {
			list = append(list, grantOf(who, r))
		}
	}
	return list
}

// isOwnData reports whether a rule is only for the scheduler's lease or legacy Policy.
func (g granter) isOwnData(r rbacv1.PolicyRule) bool {
	others := func(name string) bool { return name != g.name && !strings.HasPrefix(name, g.name+"-policy-") }
	return len(r.ResourceNames) > 0 && !slices.ContainsFunc(r.ResourceNames, others) &&
		subset(r.Resources, "leases", "configmaps") && subset(r.Verbs, "get", "update")
}

func subset(list []string, of ...string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(of, s) })
}

// grantOf returns the grant for one rule. It has a part for each verb on each resource.
func grantOf(who string, r rbacv1.PolicyRule) grant {
	resources := slices.Concat(r.Resources, r.NonResourceURLs)
	g := grant{text: who + strings.Join(r.Verbs, ", ") + " " + strings.Join(resources, ", ")}
	if groups := strings.Trim(strings.Join(r.APIGroups, ", "), ", "); groups != "" {
		g.text += " of " + groups
	}
	if len(r.ResourceNames) > 0 {
		g.text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	add := func(verb, group, resource string) {
		if len(r.ResourceNames) == 0 {
			g.parts = append(g.parts, strings.Join([]string{who, verb, group, resource}, "|"))
		}
		for _, name := range r.ResourceNames {
			g.parts = append(g.parts, strings.Join([]string{who, verb, group, resource, name}, "|"))
		}
	}
	for _, verb := range r.Verbs {
		for _, url := range r.NonResourceURLs {
			add(verb, "", url)
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				add(verb, group, resource)
			}
		}
	}
	return g
}

// podGrants returns what the pods of a Deployment can use from their node and from others' Secrets.
// The node's network is usual, and follows from the API server's address.
func podGrants(d *appsv1.Deployment, objects []*unstructured.Unstructured) (list []grant) {
	add := func(what string) { list = append(list, podGrant(d.Name, what)) }
	pod := d.Spec.Template.Spec
	if s := pod.SecurityContext; s != nil && s.RunAsUser != nil && *s.RunAsUser == 0 {
		add("root in their containers")
	}
	for _, v := range pod.Volumes {
		own := func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Secret" && o.GetName() == v.Secret.SecretName
		}
		switch {
		case v.HostPath != nil:
			add("file " + v.HostPath.Path + " of the node")
		case v.Secret != nil && !slices.ContainsFunc(objects, own):
			add("Secret " + v.Secret.SecretName)
		}
	}
	return list
}

func podGrant(deployment, what string) grant {
	text := "pods of " + deployment + ": " + what
	return grant{text, []string{text}}
}

// AllowExtenders allows the pods in a revision's plan to use the client certificates for these
// extenders, which are deployed.
func (p *Plan) AllowExtenders(extenders []v1alpha1.Extender) {
	for _, e := range extenders {
		if secret := manifest.ExtenderClient(e.Name); e.Deployed.ClientSecret == secret {
			p.allowed = append(p.allowed, podGrant(p.Name, "Secret "+secret))
		}
	}
}

// gained returns the grants in objects that are not in held.
func (g granter) gained(objects []*unstructured.Unstructured, held []grant) (texts []string) {
	parts := map[string]bool{}
	for _, h := range held {
		for _, part := range h.parts {
			parts[part] = true
		}
	}
	for _, w := range g.grants(objects) {
		if slices.ContainsFunc(w.parts, func(part string) bool { return !parts[part] }) && !slices.Contains(texts, w.text) {
			texts = append(texts, w.text)
		}
	}
	return texts
}

func (d *deployRun) granter() granter { return granter{d.plan.Namespace, d.plan.Name} }

// Undoes makes the plan, for a former revision, the undo of a run: it replaces that run's revision,
// and may restore the permissions that were there before it.
func (p *Plan) Undoes(o *Outcome) {
	p.Replaces, p.held = o.Revision, append([]grant{}, o.held...) // not nil
}

// confirmGained asks before a plan from the cluster gives the scheduler permissions that it does
// not have now: users who may write Secrets in its namespace can write a revision. An undo does not
// ask.
func (d *deployRun) confirmGained(ctx context.Context) error {
	named, err := d.plan.named()
	if err != nil {
		return err
	}
	texts := d.granter().gained(named, slices.Concat(d.held, d.plan.held, d.plan.allowed))
	if len(texts) == 0 {
		return nil
	}
	question := fmt.Sprintf("give %s permissions of a revision that it does not have now (%s)", d.plan.Name,
		listGained(texts))
	if d.plan.held != nil || d.Confirm == nil {
		return problem.Invalidf("deploy it again from its file or with its flags", "refusing to %s without confirmation",
			question)
	}
	return d.Confirm(ctx, question)
}

// named returns the plan's objects that are from the cluster. For a request from there, only the
// rules are compared, not those for the plugins in the image that the user names, and not the pods.
func (p *Plan) named() ([]*unstructured.Unstructured, error) {
	if len(p.rules) == 0 {
		return p.recorded, nil
	}
	alone := *p
	alone.Scheduler.PluginRules = p.rules
	objects, err := alone.render()
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }), err
}

// checkRestorable refuses to apply a revision in an undo that gives the scheduler permissions that
// it did not have before the run.
func (d *deployRun) checkRestorable(previous *apply.Revision) error {
	texts := d.granter().gained(previous.Objects, d.held)
	if len(texts) == 0 {
		return nil
	}
	return problem.Errorf("deploy it again from its file or with its flags",
		"revision %d of %s is not restored: it has permissions that the scheduler did not have before (%s)", previous.Number,
		previous.Name, listGained(texts))
}

// listGained lists the first 20 permissions, with 300 bytes each.
func listGained(texts []string) string {
	const most, longest = 20, 300
	var list []string
	for _, text := range texts[:min(most, len(texts))] {
		list = append(list, strings.ToValidUTF8(text[:min(longest, len(text))], ""))
	}
	if more := len(texts) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
