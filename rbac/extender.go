package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// ExtenderRole grants the permissions that an extender in its own pods needs: to read nodes and
// pods, write events, its policies' rules (PluginRules), and to bind pods if it has a bind verb.
func ExtenderRole(o Options, binds bool) *rbacv1.ClusterRole {
	role := PluginRole(o)
	role.Name = extenderRole(o)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	if binds {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding"},
			Verbs: []string{"create"}})
	}
	role.Rules = append(rules, role.Rules...)
	return role
}

// ExtenderRoleBinding grants ExtenderRole.
func ExtenderRoleBinding(o Options) *rbacv1.ClusterRoleBinding {
	return o.clusterRoleBinding(extenderRole(o), extenderRole(o))
}

// extenderRole includes the namespace, since the names of cluster-scoped objects must be unique.
func extenderRole(o Options) string { return o.Name + "-extender" }
