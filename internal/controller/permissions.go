package controller

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// namespaceRules are the controller's permissions in its namespace.
func namespaceRules() []rbacv1.PolicyRule {
	apply := []string{"get", "list", "create", "patch", "delete"}
	return []rbacv1.PolicyRule{
		rule(v1alpha1.Group, []string{v1alpha1.Resource}, "get", "list", "watch", "patch"),
		rule(v1alpha1.Group, []string{v1alpha1.Resource + "/status"}, "patch"),
		rule("", []string{"serviceaccounts", "configmaps"}, append(apply, "watch")...),
		rule("apps", []string{"deployments"}, append(apply, "watch")...),
		rule(rbacv1.GroupName, []string{"roles", "rolebindings"}, append(apply, "watch")...),
		// Revisions are Secrets.
		rule("", []string{"secrets", "services"}, append(apply, "watch")...),
		rule("policy", []string{"poddisruptionbudgets"}, apply...),
		rule("networking.k8s.io", []string{"networkpolicies"}, apply...),
		rule("coordination.k8s.io", []string{"leases"}, "get", "create", "update", "delete"),
		rule("apps", []string{"replicasets"}, "list"),
		// The pod that verifies a scheduler.
		rule("", []string{"pods"}, "get", "list", "watch", "create", "delete"),
		rule("", []string{"pods/log"}, "get"),
		rule("", []string{"events"}, "list", "create", "patch"),
	}
}

// clusterRules are the controller's permissions in the cluster. It holds every permission that it
// grants to a scheduler, except for the cluster's own roles, which it may bind by name: the API
// server refuses an object's rules, and bindings, that go beyond that. It may delete any
// ClusterRole and ClusterRoleBinding: RBAC has no name prefixes, and the names of schedulers'
// objects are not known when the controller is installed.
func clusterRules() []rbacv1.PolicyRule {
	bind := rule(rbacv1.GroupName, []string{"clusterroles"}, "bind")
	bind.ResourceNames = []string{"system:kube-scheduler", "system:volume-scheduler"}
	return []rbacv1.PolicyRule{
		rule(rbacv1.GroupName, []string{"clusterroles", "clusterrolebindings"}, "get", "list", "watch", "create", "patch",
			"delete"),
		bind,
		rule("", []string{"nodes", "pods", "namespaces"}, "list"),
		// The cluster may close kube-system: then the controller has no permissions there.
		rule(rbacv1.GroupName, []string{"rolebindings"}, "list"),
	}
}

// systemRules are the permissions in kube-system: each scheduler reads the API server's
// authentication configuration there.
func systemRules() []rbacv1.PolicyRule {
	bind := rule(rbacv1.GroupName, []string{"roles"}, "bind")
	bind.ResourceNames = []string{"extension-apiserver-authentication-reader"}
	return []rbacv1.PolicyRule{
		rule(rbacv1.GroupName, []string{"rolebindings"}, "get", "create", "patch", "delete"),
		bind,
		// The leases of API servers and the controller manager.
		rule("coordination.k8s.io", []string{"leases"}, "get", "list"),
	}
}

// defaultRules are the permissions in the namespace default: the API servers' addresses.
func defaultRules() []rbacv1.PolicyRule {
	list := []rbacv1.PolicyRule{
		rule("", []string{"services", "endpoints"}, "get"), // endpoints: before 1.21
		rule("discovery.k8s.io", []string{"endpointslices"}, "get"),
	}
	for i := range list {
		list[i].ResourceNames = []string{"kubernetes"}
	}
	return list
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// Permissions returns all rules for the controller.
func Permissions() [][]rbacv1.PolicyRule {
	return [][]rbacv1.PolicyRule{namespaceRules(), clusterRules(), systemRules(), defaultRules()}
}
