package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RoleName names the [Role] objects for snapshots.
const RoleName = "pmk-sched-snapshot"

// RecordingRoleName names the [Role] objects for recordings, which list and watch.
const RecordingRoleName = "pmk-sched-record"

// Role returns a ServiceAccount in a namespace, a ClusterRole that permits verbs for the kinds, and
// their binding. A snapshot needs the verb list only: nothing is changed, and no object that is not
// listed is read.
func Role(name, namespace string, kinds []*Kind, verbs ...string) []runtime.Object {
	meta := metav1.ObjectMeta{Name: name}
	account := meta
	account.Namespace = namespace
	version := rbacv1.SchemeGroupVersion.String()
	return []runtime.Object{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: account},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: meta,
			Rules: rules(kinds, verbs)},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		},
	}
}

// rules returns a rule for each API group.
func rules(kinds []*Kind, verbs []string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, k := range kinds {
		at := slices.IndexFunc(all, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == k.Group })
		if at < 0 {
			at = len(all)
			all = append(all, rbacv1.PolicyRule{APIGroups: []string{k.Group}, Verbs: verbs})
		}
		all[at].Resources = append(all[at].Resources, k.Resource)
	}
	return all
}
