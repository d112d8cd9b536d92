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

// KubeSchedulerBinding grants the ClusterRole system:kube-scheduler: nodes, pods, bindings, events,
// and everything else that the cluster's own scheduler reads. A scheduler without one of these
// permissions does not fail but hangs silently, so the role is never copied.
func KubeSchedulerBinding(o Options) *rbacv1.ClusterRoleBinding {
	return o.clusterRoleBinding(o.Name+"-as-kube-scheduler", kubeSchedulerRole)
}

// VolumeSchedulerBinding grants the ClusterRole system:volume-scheduler, the only one with storage
// classes and the permission to update claims and volumes.
func VolumeSchedulerBinding(o Options) *rbacv1.ClusterRoleBinding {
	return o.clusterRoleBinding(o.Name+"-as-volume-scheduler", volumeSchedulerRole)
}

// AuthenticationReaderBinding grants, in kube-system, the Role that reads the request header and
// client certificate authorities. Without it the secure port cannot authenticate requests to
// /metrics.
func AuthenticationReaderBinding(o Options) *rbacv1.RoleBinding {
	return o.roleBinding(o.Name+"-"+authenticationReaderRole, SystemNamespace, authenticationReaderRole)
}

// LeaseRole grants the scheduler its own leader election lease. system:kube-scheduler limits get
// and update to the lease kube-scheduler; it grants create for every lease, so that verb is not
// repeated (RBAC cannot limit create to a name).
func LeaseRole(o Options) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: o.meta(o.Name+"-lease", o.leaseNamespace()),
		Rules: []rbacv1.PolicyRule{{
			APIGroups:     []string{"coordination.k8s.io"},
			Resources:     []string{"leases"},
			ResourceNames: []string{o.Name},
			Verbs:         []string{"get", "update"},
		}},
	}
}

// LeaseRoleBinding grants LeaseRole.
func LeaseRoleBinding(o Options) *rbacv1.RoleBinding {
	return o.roleBinding(o.Name+"-lease", o.leaseNamespace(), o.Name+"-lease")
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
