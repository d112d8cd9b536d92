package manifest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

	defaultPriorityClass = "system-cluster-critical"
)

// deployment returns the scheduler's Deployment.
func (s Scheduler) deployment(rules versions.Rules, args []string, m mounts) *appsv1.Deployment {
	meta := s.meta(s.Name)
	if s.SignedBy != "" {
		meta.Annotations = map[string]string{annotationSignedBy: s.SignedBy}
	}
	pods := corev1.PodTemplateSpec{ObjectMeta: podMeta(s.podLabels(), s.Restarted), Spec: s.pod(rules, args, m)}
	return rolling(meta, s.Replicas, s.SelectorLabels(), s.Surges(), pods)
}

// rolling returns a Deployment whose rollout replaces one pod after the other. With surges it
// starts a pod before it stops one.
func rolling(
	meta metav1.ObjectMeta, replicas int32, selector map[string]string, surges bool, pods corev1.PodTemplateSpec,
) *appsv1.Deployment {
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(1)
	if surges {
		surge, unavailable = unavailable, surge
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
			},
			Template: pods,
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
