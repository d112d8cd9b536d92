// Package rbac builds the RBAC objects that one custom scheduler needs: typed,
// one function per object, without I/O.
//
// It relies on the cluster. The API server keeps the ClusterRoles system:kube-scheduler and
// system:volume-scheduler and the Role extension-apiserver-authentication-reader right for its own
// release (they change in nearly every minor), so these roles are bound, not copied, and never
// edited. Separate roles grant permissions that they cannot: on the lease that is named after the
// scheduler, and on the objects that plugins read.
package rbac

import (
	"cmp"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Roles that the API server creates and reconciles at every start
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy, policy.go and namespace_policy.go).
const (
	kubeSchedulerRole        = "system:kube-scheduler"
	volumeSchedulerRole      = "system:volume-scheduler"
	authenticationReaderRole = "extension-apiserver-authentication-reader"
)

// SystemNamespace is the namespace in which the API server keeps the ConfigMap
// extension-apiserver-authentication and the Role for reading it. It does not depend on the
// scheduler's namespace.
const SystemNamespace = metav1.NamespaceSystem

// Subject is the identity in the scheduler's credentials: a client certificate's User (its common
// name), or a ServiceAccount. Namespace is only used for a ServiceAccount.
type Subject struct{ Kind, Name, Namespace string }

// User is the Subject of a client certificate with the common name cn.
func User(cn string) Subject { return Subject{Kind: rbacv1.UserKind, Name: cn} }

// ServiceAccountSubject is the Subject of a ServiceAccount's token.
func ServiceAccountSubject(namespace, name string) Subject {
	return Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func (s Subject) subjects() []rbacv1.Subject {
	if s.Kind == rbacv1.ServiceAccountKind {
		return []rbacv1.Subject{{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace}}
	}
	return []rbacv1.Subject{{Kind: s.Kind, Name: s.Name, APIGroup: rbacv1.GroupName}}
}

// Options describe the scheduler that the objects are for.
type Options struct {
	// Name is the scheduler's name, and the prefix of every object's name.
	Name string
	// Namespace is the ServiceAccount's namespace and, unless LeaseNamespace is set, the lease's
	// namespace.
	Namespace string
	// Subject is every binding's subject. Zero means the ServiceAccount Name in Namespace.
	Subject Subject
	// Labels are every object's labels.
	Labels map[string]string
	// LeaseNamespace is the namespace of the leader election lease. Empty means Namespace.
	LeaseNamespace string
	// PluginRules are the permissions that the compiled-in plugins need in addition to the
	// cluster's own roles. If empty, PluginRole is not created.
	PluginRules []rbacv1.PolicyRule
	// NoAuthenticationReader leaves [AuthenticationReader] out, where kube-system is closed.
	NoAuthenticationReader bool
	// PolicyConfigMap is the ConfigMap in Namespace with the scheduler's legacy Policy. If empty,
	// PolicyRole is not created.
	PolicyConfigMap string
}

// subject returns the subject of bindings, with its default.
func (o Options) subject() []rbacv1.Subject {
	if o.Subject == (Subject{}) {
		return ServiceAccountSubject(o.Namespace, o.Name).subjects()
	}
	return o.Subject.subjects()
}

func (o Options) leaseNamespace() string { return cmp.Or(o.LeaseNamespace, o.Namespace) }

// meta returns an object's metadata; namespace is empty for a cluster-scoped one.
func (o Options) meta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: maps.Clone(o.Labels)}
}

// Objects returns every object that the scheduler needs, in the order in which to apply them: the
// account, then each role before its binding. The plugin role and its binding are only included if
// there are rules, and those for the Policy if there is one.
func Objects(o Options) []runtime.Object {
	objects := []runtime.Object{
		ServiceAccount(o),
		// Nodes, pods, bindings, events, and everything else that the cluster's own scheduler reads. A
		// scheduler without one of these permissions does not fail but hangs silently, so the role is
		// never copied.
		o.clusterRoleBinding(o.Name+"-as-kube-scheduler", kubeSchedulerRole),
		// The only role with storage classes and the permission to update claims and volumes.
		o.clusterRoleBinding(o.Name+"-as-volume-scheduler", volumeSchedulerRole),
	}
	if !o.NoAuthenticationReader {
		objects = append(objects, AuthenticationReader(o))
	}
	objects = append(objects,
		leaseRole(o),
		o.roleBinding(o.Name+"-lease", o.leaseNamespace(), o.Name+"-lease"))
	if len(o.PluginRules) > 0 {
		objects = append(objects, PluginRole(o), PluginRoleBinding(o))
	}
	if o.PolicyConfigMap != "" {
		objects = append(objects, PolicyRole(o), PolicyRoleBinding(o))
	}
	return objects
}
