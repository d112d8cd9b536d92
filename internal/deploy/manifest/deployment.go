package manifest

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// nonRoot is the user and group of the scheduler process, as in the image.
	nonRoot = 65532

	// PortName is the name of the port of a scheduler or extender.
	PortName = "https"

	// gracePeriod is the termination grace period in seconds. The scheduler has nothing to save: it
	// stops listening at once, and without leader election the process then waits for the next pod
	// until it is killed (Scheduler.Run blocks in the queue). A rollout would wait for that.
	gracePeriod = 5

	masterTaint       = "node-role.kubernetes.io/master"
	controlPlaneTaint = "node-role.kubernetes.io/control-plane"
	// criticalTaint keeps all pods but the critical ones from nodes for cluster components, such as
	// the system node pools in AKS.
	criticalTaint = "CriticalAddonsOnly"

	defaultPriorityClass = "system-cluster-critical"
)

// deployment returns the scheduler's Deployment. A rollout replaces one pod after the other.
func (s Scheduler) deployment(rules versions.Rules, args []string, m mounts) *appsv1.Deployment {
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(1)
	if s.Surges() {
		surge, unavailable = unavailable, surge
	}
	meta := s.meta(s.Name)
	if s.SignedBy != "" {
		meta.Annotations = map[string]string{annotationSignedBy: s.SignedBy}
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &s.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: s.SelectorLabels()},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: podMeta(s.podLabels(), s.Restarted),
				Spec:       s.pod(rules, args, m),
			},
		},
	}
}

// annotationRestarted changes a pod template, so that its pods are replaced.
const annotationRestarted = "pmk-sched.io/restarted"

// annotationSignedBy on a Deployment identifies the key that must have signed its image. It is not
// in the pod template: another key replaces no pods.
const annotationSignedBy = "pmk-sched.io/signed-by"

// SignedBy returns the identifier of the key that must have signed the image in a scheduler's
// objects, or "" if none is required.
func SignedBy(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if id := o.GetAnnotations()[annotationSignedBy]; id != "" {
			return id
		}
	}
	return ""
}

func podMeta(labels map[string]string, restarted string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Labels: labels}
	if restarted != "" {
		meta.Annotations = map[string]string{annotationRestarted: restarted}
	}
	return meta
}

// Surges reports whether a rollout starts a new pod before it stops an old one, so that a scheduler
// that does not start replaces none. On the host network both would use the same port, and without
// leader election both would schedule the same pods. Several replicas on any node are replaced one
// after the other: a third pod would take the place of one of them, and the last two could end on
// one node.
func (s Scheduler) Surges() bool {
	return !s.Credentials.HostNetwork() && s.Configuration.LeaderElect && !s.spreads()
}

// spreads reports whether there are several replicas on any node.
func (s Scheduler) spreads() bool { return s.Replicas > 1 && len(s.NodeSelector) == 0 }

func (s Scheduler) pod(rules versions.Rules, args []string, m mounts) corev1.PodSpec {
	token, grace := s.Credentials.Mode == ModeServiceAccount, int64(gracePeriod)
	pod := corev1.PodSpec{
		ServiceAccountName:            s.Name,
		AutomountServiceAccountToken:  &token,
		PriorityClassName:             priorityClass(s.PriorityClass),
		TerminationGracePeriodSeconds: &grace,
		Affinity:                      s.affinity(),
		TopologySpreadConstraints:     s.spread(),
		Tolerations:                   s.tolerations(),
		SecurityContext:               s.podSecurity(),
		Containers:                    []corev1.Container{s.container(rules, args, m)},
		Volumes:                       m.volumes,
	}
	if s.Credentials.HostNetwork() {
		pod.HostNetwork = true
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	return pod
}

func (s Scheduler) container(rules versions.Rules, args []string, m mounts) corev1.Container {
	return corev1.Container{
		Name:            ContainerName,
		Image:           s.Image,
		ImagePullPolicy: s.PullPolicy,
		Command:         append([]string{Program}, args...),
		Ports:           []corev1.ContainerPort{s.port()},
		Resources:       s.resources(),
		LivenessProbe:   s.probe(rules.LivenessPath, args, timing{delay: 15, period: 10, failures: 8}),
		ReadinessProbe:  s.probe(s.readinessPath(rules), args, timing{period: 5, failures: 3}),
		VolumeMounts:    m.places,
		SecurityContext: confined(),
	}
}

// port returns the port for health and metrics. On the host network it also sets hostPort: API
// servers before 1.28 default it, and the default would remain when other credentials move the pod
// to the pod network.
func (s Scheduler) port() corev1.ContainerPort {
	port := corev1.ContainerPort{Name: PortName, ContainerPort: int32(s.Port), Protocol: corev1.ProtocolTCP}
	if s.Credentials.HostNetwork() {
		port.HostPort = port.ContainerPort
	}
	return port
}

func (s Scheduler) resources() corev1.ResourceRequirements {
	if len(s.Resources.Requests)+len(s.Resources.Limits) > 0 {
		return s.Resources
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
}

// timing is a probe's delay and period in seconds, and its failure threshold.
type timing struct{ delay, period, failures int32 }

// probe requests the secure port, which serves health to everyone. The kubelet uses the pod IP
// unless the scheduler listens on one address only.
func (s Scheduler) probe(path string, args []string, t timing) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Host: bindAddress(args), Path: path, Port: intstr.FromString(PortName), Scheme: corev1.URISchemeHTTPS,
		}},
		InitialDelaySeconds: t.delay,
		PeriodSeconds:       t.period,
		TimeoutSeconds:      5,
		FailureThreshold:    t.failures,
	}
}

// readinessPath returns the readiness probe's path. From 1.31 it checks that the caches are filled
// (sched-handler-sync in cmd/kube-scheduler/app/server.go). With delayCacheUntilActive a standby
// fills its caches only when it leads and would never be ready: a rollout with several replicas
// would not finish. A single replica leads, so the check stays.
func (s Scheduler) readinessPath(rules versions.Rules) string {
	configuration, _ := profiles.Summarize(s.Configuration.YAML)
	if rules.ReadinessPath == "/readyz" && s.Replicas > 1 && configuration.DelayCacheUntilActive {
		return rules.ReadinessPath + "?exclude=sched-handler-sync"
	}
	return rules.ReadinessPath
}

// podSecurity lets the process read its credentials: as an unprivileged user in the group that owns
// mounted Secrets and tokens, or as root if only root can read them.
func (s Scheduler) podSecurity() *corev1.PodSecurityContext {
	id, nonRootOnly := int64(nonRoot), true
	if s.AssignedUser && !s.Credentials.root() {
		return &corev1.PodSecurityContext{RunAsNonRoot: &nonRootOnly} // it assigns the seccomp profile too
	}
	if s.Credentials.root() {
		id, nonRootOnly = 0, false
	}
	security := &corev1.PodSecurityContext{
		RunAsUser: &id, RunAsGroup: &id, RunAsNonRoot: &nonRootOnly,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !s.Credentials.root() {
		security.FSGroup = &id
	}
	return security
}

// priorityClass returns the priority class name for pods: the chosen one, or the default.
func priorityClass(chosen string) string {
	switch chosen {
	case "":
		return defaultPriorityClass
	case v1alpha1.NoPriorityClass:
		return ""
	}
	return chosen
}

func (s Scheduler) tolerations() []corev1.Toleration {
	if s.Tolerations != nil {
		return s.Tolerations
	}
	return Tolerations(nil, nil)
}

// Tolerations returns the tolerations for control-plane nodes' usual taints, for CriticalAddonsOnly
// and for taints with the given keys, each with any value and effect: values are empty with kubeadm
// and "true" with PMK. The tolerations in others follow.
func Tolerations(taints []string, others []corev1.Toleration) []corev1.Toleration {
	tolerations := []corev1.Toleration{}
	keys := slices.Sorted(slices.Values(taints))
	for _, key := range slices.Concat([]string{masterTaint, controlPlaneTaint, criticalTaint}, keys) {
		tolerations = withToleration(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	for _, other := range others {
		tolerations = withToleration(tolerations, other)
	}
	return tolerations
}

// withToleration adds a toleration unless the list has it.
func withToleration(list []corev1.Toleration, added corev1.Toleration) []corev1.Toleration {
	if slices.ContainsFunc(list, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, added) }) {
		return list
	}
	return append(list, added)
}

// affinity selects the nodes and keeps the replicas apart.
func (s Scheduler) affinity() *corev1.Affinity {
	affinity := corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: s.nodeRequirements()}},
		},
	}}
	if s.Replicas > 1 && (!s.spreads() || s.Credentials.HostNetwork()) {
		affinity.PodAntiAffinity = s.apart()
	}
	return &affinity
}

// Simulated nodes have this label, by kwok's convention. They report every pod as running, and none
// runs.
const (
	simulatedLabel = "type"
	simulatedValue = "kwok"
)

// nodeRequirements returns the requirements from the node selector and the image. Without a node
// selector, they exclude simulated nodes, and Windows nodes, which managed clusters can have.
func (s Scheduler) nodeRequirements() (requirements []corev1.NodeSelectorRequirement) {
	if len(s.Architectures) > 0 {
		requirements = append(requirements, corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable,
			Operator: corev1.NodeSelectorOpIn, Values: s.Architectures})
	}
	if len(s.NodeSelector) == 0 {
		return append(requirements,
			corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn,
				Values: []string{"linux"}},
			corev1.NodeSelectorRequirement{Key: simulatedLabel, Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{simulatedValue}})
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		requirement := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
		if value := s.NodeSelector[key]; value != "" {
			requirement.Operator, requirement.Values = corev1.NodeSelectorOpIn, []string{value}
		}
		requirements = append(requirements, requirement)
	}
	return requirements
}

// apart puts each replica on a different node. It is required on the host network, where replicas
// share a port, and preferred elsewhere.
func (s Scheduler) apart() *corev1.PodAntiAffinity {
	term := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: s.SelectorLabels()},
		TopologyKey:   corev1.LabelHostname,
	}
	if s.Credentials.HostNetwork() {
		return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	}
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: term},
	}}
}

// spread puts replicas that may run on any node into different zones and on different nodes. A lost
// zone must not keep a replica from starting, and nodes may have no zone: the constraints are
// preferences. Unlike affinity, they do not count a pod that is being deleted
// (pkg/scheduler/framework/plugins/podtopologyspread).
func (s Scheduler) spread() []corev1.TopologySpreadConstraint {
	if !s.spreads() {
		return nil
	}
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: s.SelectorLabels()},
		})
	}
	return constraints
}
