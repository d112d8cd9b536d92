package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Prefixes for annotations, volume names and container names that package manifest sets.
const (
	annotationPrefix = "pmk-sched.io/"
	kubeconfigPrefix = "kubeconfig-for-"
	kubeconfigVolume = "kubeconfig-file"
	extenderPrefix   = "extender-"
)

// CheckObjects returns an error unless objs can be the objects of the scheduler or extender name in
// namespace ns: their kinds, names and namespaces, the roles and subjects in their bindings, and
// their pods' privileges are those that package manifest renders, in this version or an earlier
// one. Users who may write Secrets in the namespace can write a revision, and pmk-sched applies its
// objects with an administrator's permissions. Role rules, the certificate's user and the image are
// not checked.
func CheckObjects(objs []*unstructured.Unstructured, ns, name string) error {
	p := permitted{name: name, namespace: ns, names: map[string]bool{}}
	for _, obj := range objs {
		p.names[nameOf(obj)] = true
	}
	for _, obj := range objs {
		if err := p.check(obj); err != nil {
			return fmt.Errorf("%.300s %w", nameOf(obj), err)
		}
	}
	return nil
}

// permitted are the objects of one scheduler or extender. names are all names in a revision.
type permitted struct {
	name, namespace string
	names           map[string]bool
}

func (p *permitted) check(obj *unstructured.Unstructured) error {
	switch {
	case !ownership.Owns(obj.GetLabels(), p.name):
		return fmt.Errorf("does not have the labels of the objects of %s", p.name)
	case obj.GetKind() == "Namespace" || !slices.Contains(ownedKinds, obj.GroupVersionKind()):
		return fmt.Errorf("is of a kind that no scheduler has: %.100s", obj.GroupVersionKind())
	case !p.ownName(obj):
		return fmt.Errorf("does not have a name of an object of %s", p.name)
	case !p.ownNamespace(obj):
		return fmt.Errorf("is not in namespace %s", p.namespace)
	}
	metadata, _, _ := unstructured.NestedMap(obj.Object, "metadata")
	for field := range metadata {
		if !slices.Contains([]string{"name", "namespace", "labels", "annotations", "creationTimestamp"}, field) {
			return fmt.Errorf("has the metadata %.100q", field)
		}
	}
	if err := checkAnnotations(obj.GetAnnotations()); err != nil {
		return err
	}
	switch obj.GetKind() {
	case "ClusterRole":
		return strictly(obj, func(role *rbacv1.ClusterRole) error {
			if role.AggregationRule != nil {
				return errors.New("aggregates other roles")
			}
			return nil
		})
	case "Role":
		return strictly(obj, func(*rbacv1.Role) error { return nil })
	case "ClusterRoleBinding":
		return strictly(obj, func(b *rbacv1.ClusterRoleBinding) error { return p.checkBinding(obj, b.RoleRef, b.Subjects) })
	case "RoleBinding":
		return strictly(obj, func(b *rbacv1.RoleBinding) error { return p.checkBinding(obj, b.RoleRef, b.Subjects) })
	case "Service":
		return strictly(obj, checkService)
	case "Deployment":
		return strictly(obj, p.checkDeployment)
	case "MutatingWebhookConfiguration":
		return strictly(obj, checkWebhook)
	case "MutatingAdmissionPolicy":
		return strictly(obj, p.checkPolicy)
	case "MutatingAdmissionPolicyBinding":
		return strictly(obj, p.checkPolicyBinding)
	}
	return nil
}

// strictly calls check with the typed object, which has no fields that the type does not have.
func strictly[T any](obj *unstructured.Unstructured, check func(*T) error) error {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, &typed, true); err != nil {
		return fmt.Errorf("cannot be decoded: %.300w", err)
	}
	return check(&typed)
}

// ownName reports whether obj's name is derived from the scheduler's name.
func (p *permitted) ownName(obj *unstructured.Unstructured) bool {
	name := obj.GetName()
	if obj.GroupVersionKind().Group == admissionGroup {
		return name == ownership.RouteName(p.name)
	}
	if obj.GetKind() == "ConfigMap" {
		name = strings.TrimPrefix(name, kubeconfigPrefix)
	}
	return name == p.name || strings.HasPrefix(name, p.name+"-")
}

// ownNamespace reports whether obj is in the scheduler's namespace or at cluster scope. The
// permission for the lease may be elsewhere, and the permission to read the authentication
// configuration is in kube-system.
func (p *permitted) ownNamespace(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "MutatingAdmissionPolicy",
		"MutatingAdmissionPolicyBinding":
		return obj.GetNamespace() == ""
	case "Role":
		return obj.GetNamespace() == p.namespace || obj.GetName() == p.name+"-lease"
	case "RoleBinding":
		reader, _, _ := unstructured.NestedString(obj.Object, "roleRef", "name")
		return obj.GetNamespace() == p.namespace || obj.GetName() == p.name+"-lease" ||
			obj.GetNamespace() == metav1.NamespaceSystem && reader == authenticationReader
	}
	return obj.GetNamespace() == p.namespace
}

func checkAnnotations(annotations map[string]string) error {
	for key := range annotations {
		if !strings.HasPrefix(key, annotationPrefix) {
			return fmt.Errorf("has the annotation %.100q", key)
		}
	}
	return nil
}

// Roles in the cluster that schedulers are bound to; see package rbac.
const authenticationReader = "extension-apiserver-authentication-reader"

// checkBinding permits a role in the same revision, and the cluster's roles that package rbac
// binds, for the scheduler's ServiceAccount or its certificate's user.
func (p *permitted) checkBinding(obj *unstructured.Unstructured, role rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	system := obj.GetKind() == "ClusterRoleBinding" && role.Kind == "ClusterRole" &&
		slices.Contains([]string{"system:kube-scheduler", "system:volume-scheduler"}, role.Name)
	reader := obj.GetKind() == "RoleBinding" && obj.GetNamespace() == metav1.NamespaceSystem && role.Kind == "Role" &&
		role.Name == authenticationReader
	own := &unstructured.Unstructured{}
	own.SetKind(role.Kind)
	own.SetName(role.Name)
	if role.Kind == "Role" {
		own.SetNamespace(obj.GetNamespace())
	}
	if role.APIGroup != rbacv1.GroupName || !system && !reader && !p.names[nameOf(own)] {
		return fmt.Errorf("binds %.100s %.100q", role.Kind, role.Name)
	}
	for _, s := range subjects {
		account := s.Kind == rbacv1.ServiceAccountKind && s.Namespace == p.namespace && s.Name == p.name && s.APIGroup == ""
		user := s.Kind == rbacv1.UserKind && s.Name != "" && s.APIGroup == rbacv1.GroupName
		if !account && !user {
			return fmt.Errorf("grants permissions to %.100s %.100q", s.Kind, s.Name)
		}
	}
	return nil
}

func checkService(s *corev1.Service) error {
	allowed := s.Spec
	allowed.Ports, allowed.Selector, allowed.Type = nil, nil, ""
	if s.Spec.Type != "" && s.Spec.Type != corev1.ServiceTypeClusterIP ||
		!equality.Semantic.DeepEqual(allowed, corev1.ServiceSpec{}) {
		return errors.New("has fields of its spec that pmk-sched does not set")
	}
	return nil
}

func (p *permitted) checkDeployment(d *appsv1.Deployment) error {
	template := d.Spec.Template
	if err := checkAnnotations(template.Annotations); err != nil {
		return err
	}
	pod := template.Spec
	if pod.ServiceAccountName != p.name {
		return fmt.Errorf("uses ServiceAccount %.100q", pod.ServiceAccountName)
	}
	if err := checkPodSecurity(pod.SecurityContext); err != nil {
		return err
	}
	for _, c := range pod.Containers {
		if err := checkContainer(c); err != nil {
			return fmt.Errorf("has container %.100q, which %w", c.Name, err)
		}
	}
	for _, v := range pod.Volumes {
		if err := p.checkVolume(v); err != nil {
			return fmt.Errorf("has volume %.100q, which %w", v.Name, err)
		}
	}
	// Everything else must be empty, also fields that are unknown here.
	pod.NodeSelector, pod.Affinity, pod.Tolerations, pod.TopologySpreadConstraints = nil, nil, nil, nil
	pod.PriorityClassName, pod.TerminationGracePeriodSeconds = "", nil
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = "", nil
	pod.HostNetwork, pod.DNSPolicy, pod.SecurityContext, pod.Containers, pod.Volumes = false, "", nil, nil, nil
	if !equality.Semantic.DeepEqual(pod, corev1.PodSpec{}) {
		return errors.New("has fields of its pods that pmk-sched does not set")
	}
	return nil
}

func checkPodSecurity(s *corev1.PodSecurityContext) error {
	if s == nil {
		return nil
	}
	rest := *s
	rest.RunAsUser, rest.RunAsGroup, rest.RunAsNonRoot, rest.FSGroup, rest.SeccompProfile = nil, nil, nil, nil, nil
	if !equality.Semantic.DeepEqual(rest, corev1.PodSecurityContext{}) || !isDefault(s.SeccompProfile) {
		return errors.New("has a security context that pmk-sched does not set")
	}
	return nil
}

func isDefault(p *corev1.SeccompProfile) bool {
	return p == nil || p.Type == corev1.SeccompProfileTypeRuntimeDefault
}

func checkContainer(c corev1.Container) error {
	if c.Name != ownership.Scheduler && c.Name != ownership.Extender && !strings.HasPrefix(c.Name, extenderPrefix) {
		return errors.New("pmk-sched does not have")
	}
	for _, variable := range c.Env {
		if variable.ValueFrom != nil {
			return fmt.Errorf("reads the variable %.100s", variable.Name)
		}
	}
	if s := c.SecurityContext; s != nil {
		rest := *s
		rest.ReadOnlyRootFilesystem, rest.AllowPrivilegeEscalation, rest.Privileged, rest.Capabilities = nil, nil, nil, nil
		switch {
		case isTrue(s.Privileged) || isTrue(s.AllowPrivilegeEscalation) ||
			s.Capabilities != nil && len(s.Capabilities.Add) > 0:
			return errors.New("is privileged")
		case !equality.Semantic.DeepEqual(rest, corev1.SecurityContext{}):
			return errors.New("has a security context that pmk-sched does not set")
		}
	}
	c.Name, c.Image, c.ImagePullPolicy, c.Command, c.Args, c.Ports, c.Env = "", "", "", nil, nil, nil, nil
	c.Resources, c.LivenessProbe, c.ReadinessProbe, c.VolumeMounts = corev1.ResourceRequirements{}, nil, nil, nil
	c.SecurityContext = nil
	if !equality.Semantic.DeepEqual(c, corev1.Container{}) {
		return errors.New("has fields that pmk-sched does not set")
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// checkVolume permits ConfigMaps and Secrets in the same revision, the Secret with the client
// certificate for an extender, and the node's own kubeconfig.
func (p *permitted) checkVolume(v corev1.Volume) error {
	rest := v.VolumeSource
	switch {
	case v.ConfigMap != nil:
		rest.ConfigMap = nil
		if !p.names["ConfigMap/"+p.namespace+"/"+v.ConfigMap.Name] {
			return fmt.Errorf("is ConfigMap %.100q of others", v.ConfigMap.Name)
		}
	case v.Secret != nil:
		rest.Secret = nil
		client := strings.HasPrefix(v.Name, extenderPrefix) && strings.HasSuffix(v.Secret.SecretName, "-client")
		if !client && !p.names["Secret/"+p.namespace+"/"+v.Secret.SecretName] {
			return fmt.Errorf("is Secret %.100q of others", v.Secret.SecretName)
		}
	case v.HostPath != nil:
		rest.HostPath = nil
		if v.Name != kubeconfigVolume || v.HostPath.Type == nil || *v.HostPath.Type != corev1.HostPathFile {
			return fmt.Errorf("is %.100q of the node", v.HostPath.Path)
		}
	}
	if !equality.Semantic.DeepEqual(rest, corev1.VolumeSource{}) {
		return errors.New("is of a kind that pmk-sched does not mount")
	}
	return nil
}
