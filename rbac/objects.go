package rbac

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceAccount is the account of the scheduler's pod. Its token is only mounted if the pod uses
// it as credentials.
func ServiceAccount(o Options) *corev1.ServiceAccount {
	mount := false
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   o.meta(o.Name, o.Namespace),
		AutomountServiceAccountToken: &mount,
	}
}

// leaseRole grants the scheduler its own leader election lease. system:kube-scheduler limits get
// and update to the lease kube-scheduler; it grants create for every lease, so that verb is not
// repeated (RBAC cannot limit create to a name).
func leaseRole(o Options) *rbacv1.Role {
	return o.role(o.Name+"-lease", o.leaseNamespace(), rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		ResourceNames: []string{o.Name}, Verbs: []string{"get", "update"},
	})
}

// AuthenticationReader binds the Role in kube-system that reads the request header and client
// certificate authorities. Without it the secure port authenticates requests to /metrics by their
// tokens only: kube-scheduler tolerates that it cannot read them, with a warning
// (--authentication-tolerate-lookup-failure, cmd/kube-scheduler/app/options).
func AuthenticationReader(o Options) *rbacv1.RoleBinding {
	return o.roleBinding(o.Name+"-"+authenticationReaderRole, SystemNamespace, authenticationReaderRole)
}

// PolicyRole grants the ConfigMap with the scheduler's legacy Policy: 1.20–1.22 read it from the
// API server at startup, and system:kube-scheduler does not grant it.
func PolicyRole(o Options) *rbacv1.Role {
	return o.role(o.Name+"-policy", o.Namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"},
		ResourceNames: []string{o.PolicyConfigMap}, Verbs: []string{"get"},
	})
}

// PolicyRoleBinding grants PolicyRole.
func PolicyRoleBinding(o Options) *rbacv1.RoleBinding {
	return o.roleBinding(o.Name+"-policy", o.Namespace, o.Name+"-policy")
}

// PluginRole grants the permissions that the compiled-in plugins need in addition to the cluster's
// own roles.
func PluginRole(o Options) *rbacv1.ClusterRole {
	rules := make([]rbacv1.PolicyRule, len(o.PluginRules))
	for i := range o.PluginRules {
		o.PluginRules[i].DeepCopyInto(&rules[i])
	}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: o.meta(o.Name+"-plugins", ""),
		Rules:      rules,
	}
}

// PluginRoleBinding grants PluginRole.
func PluginRoleBinding(o Options) *rbacv1.ClusterRoleBinding {
	return o.clusterRoleBinding(o.Name+"-plugins", o.Name+"-plugins")
}

func (o Options) role(name, namespace string, rule rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: o.meta(name, namespace),
		Rules:      []rbacv1.PolicyRule{rule},
	}
}

func (o Options) clusterRoleBinding(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: o.meta(name, ""),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   o.subject(),
	}
}

func (o Options) roleBinding(name, namespace, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: o.meta(name, namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   o.subject(),
	}
}
