package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// ExtenderRole is what an extender in pods of its own may do: read nodes and pods, write events, what its policies need
// (PluginRules), and, only where it is asked to, bind pods.
func ExtenderRole(o Options, binds bool) *rbacv1.ClusterRole {
	role := PluginRole(o)
	role.Name = extenderRole(o)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	if binds {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}})
	}
	role.Rules = append(rules, role.Rules...)
	return role
}

// ExtenderRoleBinding grants ExtenderRole.
func ExtenderRoleBinding(o Options) *rbacv1.ClusterRoleBinding {
	return o.clusterRoleBinding(extenderRole(o), extenderRole(o))
}

// extenderRole is named so that no role of another namespace's extender is meant by accident: names of cluster-wide
// objects say what they are.
func extenderRole(o Options) string { return o.Name + "-extender" }
