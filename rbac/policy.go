package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyRole grants the ConfigMap with the scheduler's legacy Policy: 1.20–1.22 read it from the
// API server at startup, and system:kube-scheduler does not grant it.
func PolicyRole(o Options) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: o.meta(o.Name+"-policy", o.Namespace),
		Rules: []rbacv1.PolicyRule{{
			APIGroups:     []string{""},
			Resources:     []string{"configmaps"},
			ResourceNames: []string{o.PolicyConfigMap},
			Verbs:         []string{"get"},
		}},
	}
}

// PolicyRoleBinding grants PolicyRole.
func PolicyRoleBinding(o Options) *rbacv1.RoleBinding {
	return o.roleBinding(o.Name+"-policy", o.Namespace, o.Name+"-policy")
}
