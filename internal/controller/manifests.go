package controller

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Name is the name of the controller's objects. DefaultNamespace is their namespace, which has none
// of the cluster's Secrets: the controller reads and changes all Secrets in a namespace.
const (
	Name             = ownership.Controller
	DefaultNamespace = "pmk-sched-system"
)

// Endpoint ports.
const (
	metricsPort = 8080
	healthPort  = 8081
)

// ManifestOptions describe a controller to install.
type ManifestOptions struct {
	// Namespace of the controller and the objects that it deploys.
	Namespace string
	// Image has pmk-sched.
	Image string
	// Replicas of the controller. Only one acts.
	Replicas int
	// Release of the API server.
	Release versions.Release
	// Bounds on the images that the controller deploys.
	Bounds session.Bounds
	// Admission are the parts of admission control to install: see [admission.Parts].
	Admission []string
}

// Install returns [Objects] with an image that the bounds allow: by digest, if a key must have
// signed it.
func Install(ctx context.Context, o ManifestOptions) ([]*unstructured.Unstructured, error) {
	if err := deploy.CheckRepositories(o.Bounds, o.Image); err != nil {
		return nil, err
	}
	if o.Bounds.Key != "" {
		pinned, err := pack.VerifySignature(ctx, pack.SignatureRequest{Reference: o.Image, Key: o.Bounds.Key})
		if err != nil {
			return nil, err
		}
		o.Image = pinned
	}
	return Objects(o)
}

// Objects returns the CustomResourceDefinition, the permissions and the Deployment for a
// controller, and the default namespace.
func Objects(o ManifestOptions) ([]*unstructured.Unstructured, error) {
	definition, err := Definition(o.Release)
	if err != nil {
		return nil, err
	}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: Name, Namespace: namespace, Labels: selector()}
	}
	var objects []runtime.Object
	if o.Namespace == DefaultNamespace {
		objects = append(objects, namespaceObject())
	}
	objects = append(objects,
		&corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: meta(o.Namespace)},
		&rbacv1.ClusterRole{TypeMeta: typeOf(rbacVersion, "ClusterRole"), ObjectMeta: meta(""), Rules: clusterRules()},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeOf(rbacVersion, "ClusterRoleBinding"), ObjectMeta: meta(""),
			RoleRef: roleRef("ClusterRole"), Subjects: subjects(o.Namespace)})
	for _, role := range roles(o.Namespace) {
		objects = append(objects,
			&rbacv1.Role{TypeMeta: typeOf(rbacVersion, "Role"), ObjectMeta: meta(role.namespace), Rules: role.rules},
			&rbacv1.RoleBinding{TypeMeta: typeOf(rbacVersion, "RoleBinding"), ObjectMeta: meta(role.namespace),
				RoleRef: roleRef("Role"), Subjects: subjects(o.Namespace)})
	}
	objects = append(objects, deployment(o, meta(o.Namespace)))
	if len(o.Admission) > 0 {
		objects = append(objects, admissionObjects(o)...)
	}
	rendered, err := kubeapi.Unstructured(objects...)
	if err != nil {
		return nil, fmt.Errorf("render the controller: %w", err)
	}
	return append([]*unstructured.Unstructured{definition}, rendered...), nil
}

// namespaceObject returns the default namespace. The pods of the controller, schedulers with a
// ServiceAccount, extenders and verifications are restricted.
func namespaceObject() *corev1.Namespace {
	all := selector()
	for _, mode := range []string{"enforce", "audit", "warn"} {
		all["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	return &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"),
		ObjectMeta: metav1.ObjectMeta{Name: DefaultNamespace, Labels: all}}
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

func typeOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func selector() map[string]string { return map[string]string{"app.kubernetes.io/name": Name} }

func roleRef(kind string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: Name}
}

func subjects(namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Name}}
}

// namespaced are rules for one namespace.
type namespaced struct {
	namespace string
	rules     []rbacv1.PolicyRule
}

// roles returns the rules for each namespace. Namespaces may be equal.
func roles(namespace string) []namespaced {
	list := []namespaced{{namespace, namespaceRules()}}
	others := []namespaced{{metav1.NamespaceSystem, systemRules()}, {metav1.NamespaceDefault, defaultRules()}}
	for _, other := range others {
		if other.namespace == namespace {
			list[0].rules = append(list[0].rules, other.rules...)
		} else {
			list = append(list, other)
		}
	}
	return list
}

// deployment returns the Deployment, which the default scheduler schedules: on a control-plane node
// if it has no other.
func deployment(o ManifestOptions, meta metav1.ObjectMeta) *appsv1.Deployment {
	replicas, class := int32(o.Replicas), ""
	if o.Namespace == metav1.NamespaceSystem { // GKE admits the class elsewhere only with a ResourceQuota for it
		class = "system-cluster-critical"
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(healthPort)}}}
	}
	// It waits as long for an API server that is being upgraded.
	startup := probe("/healthz")
	startup.PeriodSeconds, startup.FailureThreshold = 1, 1800
	container := corev1.Container{
		Name: "controller", Image: o.Image, SecurityContext: ownership.Confined(),
		Command: []string{image.SelfPath},
		Args:    arguments(o),
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort},
			{Name: "health", ContainerPort: healthPort}},
		StartupProbe: startup, LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"),
				corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
	return &appsv1.Deployment{
		TypeMeta: typeOf("apps/v1", "Deployment"), ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selector()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector()},
				Spec: corev1.PodSpec{
					ServiceAccountName: Name, SchedulerName: corev1.DefaultSchedulerName,
					PriorityClassName: class, SecurityContext: ownership.ConfinedAs(65532),
					Tolerations: []corev1.Toleration{
						{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
						{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists},
						{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
					},
					Containers: []corev1.Container{container}, Volumes: []corev1.Volume{temporary()},
				},
			},
		},
	}
}

// arguments returns the controller's command line. It contains the key, which no one who may write
// ConfigMaps in the namespace can change.
func arguments(o ManifestOptions) []string {
	list := []string{"controller", "run", "--namespace=" + o.Namespace, "--node-root=none", "--log-format=json",
		"--cache-dir=/tmp/cache", fmt.Sprintf("--metrics-address=:%d", metricsPort),
		fmt.Sprintf("--health-address=:%d", healthPort)}
	if o.Bounds.Key != "" {
		list = append(list, "--require-signature="+o.Bounds.Key)
	}
	for _, repository := range o.Bounds.Repositories {
		list = append(list, "--allow-repository="+repository)
	}
	if len(o.Admission) > 0 {
		list = append(list, "--admission="+strings.Join(o.Admission, ","))
	}
	return list
}

// temporary returns the volume for the images' schedulers, which are run to check configurations:
// four workers, 512 MiB each.
func temporary() corev1.Volume {
	volume, limit := ownership.EmptyDir("tmp"), resource.MustParse("2Gi")
	volume.EmptyDir.SizeLimit = &limit
	return volume
}

// Definition returns the CustomResourceDefinition for an API server at a release. One that does not
// evaluate CEL rules gets only the schema's rules; the controller reports the others in the
// condition Stalled.
func Definition(release versions.Release) (*unstructured.Unstructured, error) {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(v1alpha1.CRD(), &definition.Object); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	if !release.Rules().ValidationRules {
		withoutRules(definition.Object)
	}
	return definition, nil
}

// withoutRules removes the CEL rules from a schema. A field that is valid in a file only has to be
// empty.
func withoutRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		rules, _ := value["x-kubernetes-validations"].([]any)
		delete(value, "x-kubernetes-validations")
		if len(rules) > 0 && rules[0].(map[string]any)["rule"] == v1alpha1.RuleNoFile {
			value["maxLength"] = int64(0)
		}
		for _, inner := range value {
			withoutRules(inner)
		}
	case []any:
		for _, inner := range value {
			withoutRules(inner)
		}
	}
}
