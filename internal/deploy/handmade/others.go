package handmade

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// others decides about every object beside the workload. What is known to belong to the scheduler
// is replaced; what is not stays.
func (r *reading) others(w *workload) error {
	account, bound := "", map[string]bool{} // roles by kind and name
	if w != nil {
		account = ownAccount(w)
		for _, o := range r.objects {
			if binds(o, account) {
				bound[node.Text(o, "roleRef", "kind")+" "+node.Text(o, "roleRef", "name")] = true
			}
		}
	}
	for _, o := range r.objects {
		name := node.Text(o, "metadata", "name")
		switch kind := node.Text(o, "kind"); {
		case kind == "" || hasConfiguration(o) && kind != "ConfigMap" && kind != "Secret":
		case w != nil && o == w.object:
			r.replaces(o, Changed, "pmk-sched creates a Deployment of its own")
		case hasConfiguration(o):
			r.replaces(o, Changed, "the configuration is in the request, and its ConfigMap is made from it")
		case kind == "ServiceAccount" && name == account:
			r.replaces(o, Changed, "pmk-sched creates an account if the credentials need one")
		case binds(o, account):
			r.replaces(o, Changed, "pmk-sched binds the default scheduler's roles to the scheduler's identity")
		case bound[kind+" "+name]:
			if err := r.role(o, name); err != nil {
				return err
			}
		case w != nil && kind == "ConfigMap" && slices.Contains(w.volumesOf(kind), name):
			r.replaces(o, Removed, "%s", whyNoKubeconfig(o))
		case w != nil && kind == "Secret" && slices.Contains(w.volumesOf(kind), name):
			r.item(Open, nameOf(o), "pmk-sched makes a Secret of its own: delete this one when nothing else mounts it")
		default:
			r.item(Open, nameOf(o), "not a part of what pmk-sched deploys: it stays as it is")
		}
	}
	return nil
}

// ownAccount returns the scheduler's ServiceAccount, or "" if it is every pod's default.
func ownAccount(w *workload) string {
	if w.pod.ServiceAccountName == "default" {
		return ""
	}
	return w.pod.ServiceAccountName
}

// whyNoKubeconfig says why a ConfigMap that the scheduler mounts is not kept.
func whyNoKubeconfig(o *yaml.Node) string {
	data := node.Get(o, "data")
	for i := 1; node.IsMapping(data) && i < len(data.Content); i += 2 {
		if strings.Contains(data.Content[i].Value, "client-key-data") {
			return "it has a private key that everybody who may read ConfigMaps can read: pmk-sched keeps keys in a Secret, " +
				"and a kubeconfig that it writes into a ConfigMap has only the paths of key and certificate. Renew the " +
				"certificate if the ConfigMap was on a cluster"
		}
	}
	return "the credentials are in a Secret"
}

// replaces records that pmk-sched replaces an object.
func (r *reading) replaces(o *yaml.Node, action Action, format string, args ...any) {
	r.Objects = append(r.Objects, Object{APIVersion: node.Text(o, "apiVersion"), Kind: node.Text(o, "kind"),
		Namespace: node.Text(o, "metadata", "namespace"), Name: node.Text(o, "metadata", "name")})
	r.item(action, nameOf(o), format, args...)
}

// binds reports whether an object is a binding of the ServiceAccount.
func binds(o *yaml.Node, account string) bool {
	if kind := node.Text(o, "kind"); account == "" || kind != "ClusterRoleBinding" && kind != "RoleBinding" {
		return false
	}
	// A binding that others use too must stay.
	subjects := node.Items(o, "subjects")
	return len(subjects) == 1 && node.Text(subjects[0], "kind") == "ServiceAccount" &&
		node.Text(subjects[0], "name") == account
}

// role takes the permissions over that the default scheduler does not have.
func (r *reading) role(o *yaml.Node, name string) error {
	switch {
	case slices.Contains(defaultRoles(), name):
		r.item(Kept, nameOf(o), "a built-in role of Kubernetes, which pmk-sched binds to the scheduler's identity")
		return nil
	case strings.HasPrefix(name, "system:") || node.Text(o, "metadata", "labels", bootstrapLabel) != "":
		r.item(Open, nameOf(o), "a built-in role of Kubernetes that the default scheduler does not have: add the "+
			"permissions that the scheduler needs to spec.rbac.rules")
		return nil
	}
	if node.Text(o, "kind") == "Role" {
		r.item(Open, nameOf(o), "its permissions are for one namespace, and spec.rbac.rules are for all: add there what the "+
			"scheduler needs")
		return nil
	}
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := convert(o, &role); err != nil {
		return err
	}
	kept := 0
	for _, rule := range role.Rules {
		if rule, ok := beyondDefault(rule); ok {
			r.spec.RBAC.Rules, kept = append(r.spec.RBAC.Rules, rule), kept+1
		}
	}
	if kept == 0 {
		r.replaces(o, Changed, "the default scheduler's roles have its permissions")
		return nil
	}
	r.replaces(o, Kept, "%d of its %s: the default scheduler's roles have the others", kept,
		plural.Count(len(role.Rules), "rule"))
	return nil
}

// bootstrapLabel is on the roles that the API server creates
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
const bootstrapLabel = "kubernetes.io/bootstrapping"

// defaultRoles are the roles of the default scheduler.
func defaultRoles() []string {
	return []string{"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader"}
}

// beyondDefault returns the part of a rule that the roles of the default scheduler do not grant
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go). It is false if there is none.
func beyondDefault(rule rbacv1.PolicyRule) (rbacv1.PolicyRule, bool) {
	if len(rule.NonResourceURLs) > 0 {
		return rule, true
	}
	var beyond []string
	for _, resource := range rule.Resources {
		if !slices.Contains(defaultResources(), resource) {
			beyond = append(beyond, resource)
		}
	}
	rule.Resources = beyond
	return rule, len(beyond) > 0
}

// defaultResources are the resources in the rules of the default scheduler's roles.
func defaultResources() []string {
	return []string{
		"bindings", "configmaps", "csidrivers", "csinodes", "csistoragecapacities", "endpoints", "events", "leases",
		"namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets", "pods",
		"pods/binding", "pods/status", "replicasets", "replicationcontrollers", "services", "statefulsets",
		"storageclasses", "subjectaccessreviews", "tokenreviews", "volumeattachments",
	}
}
