package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/internal/admission/arbiter"
	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Name is the name of the objects of the webhooks, ArbiterName the one of the arbiter's webhook
// configuration.
const (
	Name        = authority.Service
	ArbiterName = ownership.Arbiter
)

// The parts of admission control, each of which is installed on request.
const (
	// Route makes new pods use a scheduler. API servers that serve policies for it need no webhook.
	Route = "route"
	// Arbiter refuses bindings for which a node has no room left.
	Arbiter = "arbiter"
)

// Parts returns the names of all parts.
func Parts() []string { return []string{Route, Arbiter} }

const (
	replicas    = 2
	servingPort = 8443
	metricsPort = 8080
	portName    = "https"
	rbacVersion = rbacv1.GroupName + "/v1"
	// drainSeconds is the time in which API servers learn that a replica stops.
	drainSeconds = 3
	// graceSeconds bounds the end of a replica that hangs.
	graceSeconds = 10
)

// ObjectOptions describe the webhooks to install.
type ObjectOptions struct {
	// Namespace of the webhooks, which is the controller's.
	Namespace string
	// Program is the path of pmk-sched in Image.
	Image, Program string
	// Release is the API server's release.
	Release versions.Release
	// Parts to install.
	Parts []string
}

func (o ObjectOptions) has(part string) bool { return slices.Contains(o.Parts, part) }

// needsWebhooks reports whether a part needs them: policies of API servers route pods without.
func (o ObjectOptions) needsWebhooks() bool {
	byPolicy := o.Release.Rules().MutatingPolicyAPI == admissionregistrationv1.SchemeGroupVersion.String()
	return o.has(Arbiter) || o.has(Route) && !byPolicy
}

// Objects returns the permissions, the Deployment, the Service and the configuration of the
// webhooks, if a part needs them. The controller creates their certificate authority and makes API
// servers trust it. It also registers routes, each with its scheduler.
func Objects(o ObjectOptions) []runtime.Object {
	if !o.needsWebhooks() {
		return nil
	}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: Name, Namespace: o.Namespace, Labels: ownLabels()}
	}
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.Namespace, Name: Name}}
	cluster := meta()
	cluster.Namespace = ""
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: Name}
	}
	all := []runtime.Object{
		&corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: meta()},
		&rbacv1.ClusterRole{TypeMeta: typeOf(rbacVersion, "ClusterRole"), ObjectMeta: cluster, Rules: o.clusterRules()},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeOf(rbacVersion, "ClusterRoleBinding"), ObjectMeta: cluster,
			RoleRef: ref("ClusterRole"), Subjects: account},
		&rbacv1.Role{TypeMeta: typeOf(rbacVersion, "Role"), ObjectMeta: meta(), Rules: namespaceRules()},
		&rbacv1.RoleBinding{TypeMeta: typeOf(rbacVersion, "RoleBinding"), ObjectMeta: meta(), RoleRef: ref("Role"),
			Subjects: account},
		deployment(o, meta()),
		budget(o, meta()),
		&corev1.Service{TypeMeta: typeOf("v1", "Service"), ObjectMeta: meta(), Spec: corev1.ServiceSpec{
			Selector: ownLabels(), Ports: []corev1.ServicePort{
				{Name: portName, Port: 443, TargetPort: intstr.FromString(portName)}}}},
	}
	if o.has(Arbiter) {
		all = append(all, arbiterWebhook(o.Namespace))
	}
	return all
}

// clusterRules are what the parts read: the arbiter's ledger, and the rules of routes.
func (o ObjectOptions) clusterRules() (rules []rbacv1.PolicyRule) {
	read := []string{"list", "watch"}
	if o.has(Arbiter) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: read})
	}
	if o.has(Route) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{admissionregistrationv1.GroupName},
			Resources: []string{"mutatingwebhookconfigurations"}, Verbs: read})
	}
	return rules
}

// namespaceRules are the permissions in the namespace of the webhooks. RBAC cannot restrict the
// name of an object that is created. The controller creates the Secret: an account that may create
// Secrets could write revisions.
func namespaceRules() []rbacv1.PolicyRule {
	const leases = "leases"
	group := []string{"coordination.k8s.io"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{authority.SecretName},
			Verbs: []string{"get"}},
		{APIGroups: group, Resources: []string{leases}, Verbs: []string{"create"}},
		{APIGroups: group, Resources: []string{leases}, ResourceNames: []string{arbiter.LeaseName},
			Verbs: []string{"get", "update"}},
	}
}

// Permissions returns all rules for the webhooks.
func Permissions() [][]rbacv1.PolicyRule {
	return [][]rbacv1.PolicyRule{ObjectOptions{Parts: Parts()}.clusterRules(), namespaceRules()}
}

// ControllerRules are the permissions in the cluster that the controller needs for the parts: those
// of [authority.Authority.Trust] and of the package watchdog. With [Route] it also deploys
// schedulers with a route, whose registrations have any name.
func ControllerRules(o ObjectOptions) []rbacv1.PolicyRule {
	const validating, mutating = "validatingwebhookconfigurations", "mutatingwebhookconfigurations"
	group := []string{admissionregistrationv1.GroupName}
	rules := []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{validating, mutating}, Verbs: []string{"list"}},
	}
	if o.has(Arbiter) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: group, Resources: []string{validating},
			ResourceNames: []string{ArbiterName}, Verbs: []string{"patch"}})
	}
	if !o.has(Route) {
		return rules
	}
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get"}}
	}
	return append(rules,
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{mutating, "mutatingadmissionpolicies",
			"mutatingadmissionpolicybindings"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}},
		read("coordination.k8s.io", "leases"),
		// Pods that wait for a lost scheduler are deleted if their controllers create them again.
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}},
		read("apps", "replicasets", "statefulsets"), read("", "replicationcontrollers"), read("batch", "jobs"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
}

func typeOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func ownLabels() map[string]string { return map[string]string{ownership.LabelName: Name} }

// arbiterWebhook returns the configuration that asks the arbiter about each binding. It leaves out
// the certificate authority and the path: see [authority.Authority.Trust].
func arbiterWebhook(namespace string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	all := ownLabels()
	all[ownership.LabelManagedBy] = ownership.Manager
	ignore, equivalent := admissionregistrationv1.Ignore, admissionregistrationv1.Equivalent
	onDryRun, scope := admissionregistrationv1.SideEffectClassNoneOnDryRun, admissionregistrationv1.NamespacedScope
	timeout := int32(1)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   typeOf(admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: ArbiterName, Labels: all},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: authority.Arbiter,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: authority.Service}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods/binding", "bindings"}, Scope: &scope},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded(namespace)}}},
			FailurePolicy: &ignore, MatchPolicy: &equivalent, SideEffects: &onDryRun, TimeoutSeconds: &timeout,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// excluded are the namespaces that the webhooks leave alone.
func excluded(namespace string) []string {
	if namespace == metav1.NamespaceSystem {
		return []string{namespace}
	}
	return []string{metav1.NamespaceSystem, namespace}
}

// budget returns the PodDisruptionBudget.
func budget(o ObjectOptions, meta metav1.ObjectMeta) runtime.Object {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{TypeMeta: typeOf(o.Release.Rules().PolicyAPI, "PodDisruptionBudget"),
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one,
			Selector: &metav1.LabelSelector{MatchLabels: ownLabels()}}}
}

// deployment returns the Deployment. All replicas are ready: those that do not lead pass reviews
// on.
func deployment(o ObjectOptions, meta metav1.ObjectMeta) *appsv1.Deployment {
	count, grace, class := int32(replicas), int64(graceSeconds), ""
	if o.Namespace == metav1.NamespaceSystem {
		class = "system-cluster-critical"
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path,
			Port: intstr.FromInt32(metricsPort)}}, PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 2}
	}
	live := probe("/healthz")
	live.FailureThreshold = 5
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	container := corev1.Container{
		Name: "admission", Image: o.Image, SecurityContext: ownership.Confined(), Command: []string{o.Program},
		Args: []string{"admission", "run", "--namespace=" + o.Namespace, "--node-root=none", "--log-format=json",
			"--log-level=info", fmt.Sprintf("--listen=:%d", servingPort), fmt.Sprintf("--metrics-address=:%d", metricsPort),
			"--pod=$(POD_NAME)", "--pod-ip=$(POD_IP)", fmt.Sprintf("--drain=%ds", drainSeconds),
			"--admission=" + strings.Join(o.Parts, ",")},
		Env: []corev1.EnvVar{field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP"),
			{Name: "GOMEMLIMIT", Value: "400MiB"}},
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: servingPort},
			{Name: "metrics", ContainerPort: metricsPort}},
		LivenessProbe: live, ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
				corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
	}
	return &appsv1.Deployment{
		TypeMeta: typeOf("apps/v1", "Deployment"), ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: ownLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: ownLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: Name, SchedulerName: corev1.DefaultSchedulerName, PriorityClassName: class,
					SecurityContext: ownership.ConfinedAs(65532), TerminationGracePeriodSeconds: &grace,
					Tolerations: []corev1.Toleration{
						{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
						{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists},
						{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
					},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100,
							PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
								LabelSelector: &metav1.LabelSelector{MatchLabels: ownLabels()}}}}}},
					Containers: []corev1.Container{container},
				},
			},
		},
	}
}
