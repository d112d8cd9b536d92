package manifest

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// deployment returns the extender's Deployment. A rollout starts the new pods first, so that one
// always answers.
func (e Extender) deployment(configMap, tls string) *appsv1.Deployment {
	meta := e.meta(e.Name)
	if len(e.Nodes) > 0 {
		meta.Annotations = map[string]string{AnnotationNodes: strings.Join(e.Nodes, ",")}
	}
	pods := corev1.PodTemplateSpec{ObjectMeta: podMeta(e.podLabels(), e.Restarted), Spec: e.pod(configMap, tls)}
	return rolling(meta, e.Replicas, e.selectorLabels(), true, pods)
}

// pod may run on control-plane nodes too: small clusters have no others. Without a second node both
// replicas share one.
func (e Extender) pod(configMap, tls string) corev1.PodSpec {
	yes, grace, id := true, int64(extenderGrace), int64(nonRoot)
	return corev1.PodSpec{
		ServiceAccountName:            e.Name,
		AutomountServiceAccountToken:  &yes,
		PriorityClassName:             priorityClass(e.PriorityClass),
		TerminationGracePeriodSeconds: &grace,
		Affinity:                      e.affinity(),
		Tolerations:                   Tolerations(nil, e.Tolerations),
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: e.selectorLabels()},
		}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: &id, RunAsGroup: &id, RunAsNonRoot: &yes, FSGroup: &id,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{e.container()},
		Volumes:    []corev1.Volume{configMapVolume("config", configMap), secretVolume("tls", tls)},
	}
}

func (e Extender) affinity() *corev1.Affinity {
	return Scheduler{NodeSelector: e.NodeSelector, Architectures: e.Architectures, Replicas: 1}.affinity()
}

func (e Extender) container() corev1.Container {
	probe := func(path string, t timing) *corev1.Probe {
		return httpProbe(corev1.HTTPGetAction{Path: path, Port: intstr.FromString(PortName), Scheme: corev1.URISchemeHTTPS},
			t)
	}
	return corev1.Container{
		Name:            ExtenderContainerName,
		Image:           e.Image,
		ImagePullPolicy: e.PullPolicy,
		Command:         []string{extenderProgram, "--config", extenderConfigDir + "/" + extenderConfigKey},
		Ports:           []corev1.ContainerPort{{Name: PortName, ContainerPort: ExtenderPort, Protocol: corev1.ProtocolTCP}},
		Env:             memoryLimit(extenderResources(e.Resources)),
		Resources:       extenderResources(e.Resources),
		LivenessProbe:   probe("/healthz", timing{delay: 15, period: 10, failures: 8}),
		ReadinessProbe:  probe(extenderReadiness, timing{period: 5, failures: 3}),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: extenderConfigDir, ReadOnly: true},
			{Name: "tls", MountPath: extenderTLSDir, ReadOnly: true},
		},
		SecurityContext: confined(),
	}
}

func httpProbe(get corev1.HTTPGetAction, t timing) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &get},
		InitialDelaySeconds: t.delay, PeriodSeconds: t.period, TimeoutSeconds: 5, FailureThreshold: t.failures,
	}
}

func extenderResources(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	if len(r.Requests)+len(r.Limits) > 0 {
		return r
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// memoryLimit sets the Go runtime's memory limit to nine tenths of the container's memory limit:
// pmk-extender charges its requests against it.
func memoryLimit(r corev1.ResourceRequirements) []corev1.EnvVar {
	limit := r.Limits.Memory().Value()
	if limit == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/10*9, 10)}}
}

// confined drops all privileges from a container.
func confined() *corev1.SecurityContext {
	no, security := false, ownership.Confined()
	security.Privileged = &no
	return security
}

// ExtenderHost is the server name in an extender's certificate. A client that uses the Service's IP
// address must expect this name.
func ExtenderHost(name, namespace string) string {
	return strings.Join([]string{name, namespace, "svc"}, ".")
}
