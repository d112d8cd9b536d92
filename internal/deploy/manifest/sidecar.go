package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// add adds one extender.
func (w *wirer) add(wiring Wiring) error {
	name := wiring.Extender.Name
	if problems := validation.IsDNS1123Label(wired + name); len(problems) > 0 {
		return problem.Invalidf("use lower-case letters, digits and '-', 54 at most, such as my-extender",
			"extender name %q: %s", name, problems[0])
	}
	if wiring.ClientSecret != "" {
		volume := secretVolume(wired+name+"-client", wiring.ClientSecret)
		w.pod.Volumes = append(w.pod.Volumes, volume)
		c := &w.pod.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: volume.Name, MountPath: ClientDir(name), ReadOnly: true})
	}
	if wiring.Sidecar == nil {
		return nil
	}
	return w.addSidecar(wiring)
}

// ValidateSidecar returns an error if an extender cannot be a sidecar.
func ValidateSidecar(call profiles.Extender) error {
	if call.BindVerb == "" {
		return nil
	}
	return problem.Invalidf("omit sidecar: with pods of its own it checks the scheduler's client certificate",
		"extender %s is a sidecar, which must not bind pods: on the loopback interface every process of the node could "+
			"call it to bind", call.Name)
}

// addSidecar adds the container, its configuration, and the rights of its policies for the
// scheduler's subjects.
func (w *wirer) addSidecar(wiring Wiring) error {
	name, s := wiring.Extender.Name, wiring.Sidecar
	if err := ValidateSidecar(wiring.Extender); err != nil {
		return err
	}
	switch {
	case s.Image == "":
		return problem.Invalidf("name it with --image; `pmk-sched build extender` makes one", "extender %s has no image",
			name)
	case len(s.Policies) == 0:
		return problem.Invalidf("name one with --policy: see `pmk-sched plugin list`", "extender %s has no policy", name)
	}
	if err := validatePolicies(name, s.Policies); err != nil {
		return err
	}
	text, err := extenderConfiguration(s.Policies, wiring.Extender, fmt.Sprintf("127.0.0.1:%d", s.Port), nil)
	if err != nil {
		return err
	}
	stem := w.Name + "-" + wired + name
	configuration := hashedMap(w.metaOf(name, stem), extenderConfigKey, text)
	w.added = append(w.added, configuration)
	if len(s.Rules) > 0 {
		w.addRules(name, stem, s.Rules)
	}
	volume := configMapVolume(wired+name, configuration.Name)
	w.pod.Volumes = append(w.pod.Volumes, volume)
	w.pod.Containers = append(w.pod.Containers, w.sidecar(name, s, volume.Name))
	return nil
}

func (w *wirer) addRules(name, stem string, rules []rbacv1.PolicyRule) {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: w.metaOf(name, stem), Rules: rules,
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: w.metaOf(name, stem),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: stem},
		Subjects:   slices.Clone(w.subjects),
	}
	role.Namespace, binding.Namespace = "", ""
	w.added = append(w.added, role, binding)
}

func (w *wirer) metaOf(extender, name string) metav1.ObjectMeta {
	meta := w.meta(name)
	meta.Labels[LabelExtender] = extender
	return meta
}

// sidecar returns the container. It uses the scheduler's kubeconfig.
func (w *wirer) sidecar(name string, s *Sidecar, volume string) corev1.Container {
	mounts := []corev1.VolumeMount{{Name: volume, MountPath: extenderConfigDir, ReadOnly: true}}
	for _, m := range w.pod.Containers[0].VolumeMounts {
		if m.Name == KubeconfigVolume || m.Name == CredentialsVolume {
			mounts = append(mounts, m)
		}
	}
	return corev1.Container{
		Name:            wired + name,
		Image:           s.Image,
		ImagePullPolicy: s.PullPolicy,
		Command: []string{extenderProgram, "--config", extenderConfigDir + "/" + extenderConfigKey, "--kubeconfig",
			KubeconfigPath(w.Name)},
		Ports:           w.sidecarPorts(s.Port),
		Env:             memoryLimit(extenderResources(s.Resources)),
		Resources:       extenderResources(s.Resources),
		LivenessProbe:   w.sidecarProbe("/healthz", s.Port, timing{delay: 15, period: 10, failures: 8}),
		ReadinessProbe:  w.sidecarProbe(extenderReadiness, s.Port, timing{period: 5, failures: 3}),
		VolumeMounts:    mounts,
		SecurityContext: confined(),
	}
}

// sidecarPorts reserves the port on the node if the pod uses the host network, so that no two such
// pods share a node.
func (w *wirer) sidecarPorts(port int32) []corev1.ContainerPort {
	if !w.pod.HostNetwork {
		return nil
	}
	return []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
}

// sidecarProbe probes the sidecar on loopback. The kubelet can do so only on the host network.
// Elsewhere the probe runs busybox, which every pmk-sched image has.
func (w *wirer) sidecarProbe(path string, port int32, t timing) *corev1.Probe {
	if w.pod.HostNetwork {
		return httpProbe(corev1.HTTPGetAction{Host: "127.0.0.1", Path: path, Port: intstr.FromInt32(port),
			Scheme: corev1.URISchemeHTTP}, t)
	}
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{"/bin/busybox", "wget", "-q", "-O", "/dev/null", SidecarURL(port) + path},
		}},
		InitialDelaySeconds: t.delay, PeriodSeconds: t.period, TimeoutSeconds: 5, FailureThreshold: t.failures,
	}
}
