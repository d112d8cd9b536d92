package ask

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Role is the name of the server's ServiceAccount and of its permissions.
const Role = "pmk-sched-ask"

// Paths and the port in the server's pod.
const (
	programsPath  = "/programs"
	requestPath   = "/etc/pmk-sched-ask"
	requestFile   = "pmk-sched.yaml"
	servingPath   = "/etc/pmk-sched-ask-tls"
	tokenPath     = "/etc/pmk-sched-ask-token"
	tokenKey      = "token"
	port          = 8443
	serverUser    = 65532
	mostTemporary = "1Gi"
)

// ManifestOptions describe a server in the cluster, with a deployed scheduler.
type ManifestOptions struct {
	// Name and Namespace of the scheduler.
	Name, Namespace string
	Release         versions.Release
	// Image is the scheduler's image, which pmk-sched has built: with its program, and with cp. Server
	// is an image with pmk-sched.
	Image, Server string
	// Configuration is the scheduler's configuration, Args are its flags.
	Configuration []byte
	Args          []string
	// Rules are the permissions of the scheduler's plugins, of which the server gets the reads.
	Rules []rbacv1.PolicyRule
}

// object returns the name of the objects of this server.
func (o ManifestOptions) object() string { return o.Name + "-ask" }

// Objects returns the objects of a server in the cluster: its permissions, which servers of several
// schedulers have in common, its request, the Deployment and the Service. It serves HTTPS with the
// certificate in the Secret NAME-ask-tls, and requires the token in the Secret NAME-ask-token.
func Objects(o ManifestOptions) ([]*unstructured.Unstructured, error) {
	request, err := o.request()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"app.kubernetes.io/name": Role, "app.kubernetes.io/instance": o.Name}
	meta := metav1.ObjectMeta{Name: o.object(), Namespace: o.Namespace, Labels: labels}
	objects := snapshot.Role(Role, o.Namespace, snapshot.Kinds(), reads()...)
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			role.Rules = append(role.Rules, readRules(o.Rules)...)
		}
	}
	objects = append(objects,
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta,
			Data: map[string]string{requestFile: string(request)}},
		&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
						// A changed request makes new pods.
						"pmk-sched.io/request": fmt.Sprintf("%x", sha256.Sum256(request))}},
					Spec: o.pod(),
				},
			}},
		&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
				{Name: "https", Port: 443, TargetPort: intstr.FromString("https")}}}},
	)
	rendered, err := kubeapi.Unstructured(objects...)
	if err != nil {
		return nil, fmt.Errorf("render the server of scheduler %s: %w", o.Name, err)
	}
	return rendered, nil
}

// reads are the verbs of the server's permissions.
func reads() []string { return []string{"get", "list", "watch"} }

// readRules returns the rules, with those of their verbs that read.
func readRules(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
			return !slices.Contains(reads(), verb)
		})
		if len(rule.Verbs) > 0 && len(rule.Resources) > 0 {
			all = append(all, rule)
		}
	}
	return all
}

// request returns the pmk-sched.yaml that the server reads. The image has the plugins, so it names
// none.
func (o ManifestOptions) request() ([]byte, error) {
	metadata := map[string]any{"name": o.Name, "namespace": o.Namespace}
	spec := map[string]any{"configuration": map[string]any{"inline": string(o.Configuration)}}
	if len(o.Args) > 0 {
		spec["args"] = o.Args
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind,
		"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("render the request of scheduler %s: %w", o.Name, err)
	}
	return text, nil
}

// pod returns the pod of the server. A container of the scheduler's image copies the program, which
// the server then runs.
func (o ManifestOptions) pod() corev1.PodSpec {
	copied := corev1.Container{
		Name: "kube-scheduler", Image: o.Image, SecurityContext: ownership.Confined(),
		Command:      []string{"cp", image.SchedulerPath, filepath.Join(programsPath, build.KubeScheduler)},
		VolumeMounts: []corev1.VolumeMount{{Name: "programs", MountPath: programsPath}},
	}
	probe := func(path string, period, failures int32) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: period, FailureThreshold: failures, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTPS}}}
	}
	server := corev1.Container{
		Name: "ask", Image: o.Server, SecurityContext: ownership.Confined(), Command: []string{image.SelfPath},
		Args: []string{"--programs=" + programsPath, "--cache-dir=/tmp/cache", "--node-root=none", "--log-format=json",
			"ask", "serve", "--file=" + filepath.Join(requestPath, requestFile), "--branch=" + o.Release.String(),
			fmt.Sprintf("--listen=:%d", port),
			"--tls-cert-file=" + filepath.Join(servingPath, corev1.TLSCertKey),
			"--tls-private-key-file=" + filepath.Join(servingPath, corev1.TLSPrivateKeyKey),
			"--token-file=" + filepath.Join(tokenPath, tokenKey)},
		Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: port}},
		// It listens when the scheduler has read the objects of the cluster, for which it has startTime.
		StartupProbe: probe("/healthz", 2, 180), LivenessProbe: probe("/healthz", 10, 3),
		ReadinessProbe: probe("/readyz", 5, 2),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("256Mi")},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
	}
	temporary, limit := ownership.EmptyDir("tmp"), resource.MustParse(mostTemporary)
	temporary.EmptyDir.SizeLimit = &limit
	volumes := map[string]corev1.Volume{
		programsPath: ownership.EmptyDir("programs"),
		"/tmp":       temporary,
		requestPath: {Name: "request", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: o.object()}}}},
		servingPath: {Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: o.object() + "-tls"}}},
		tokenPath: {Name: "token", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: o.object() + "-token"}}},
	}
	pod := corev1.PodSpec{
		ServiceAccountName: Role, SchedulerName: corev1.DefaultSchedulerName,
		SecurityContext: ownership.ConfinedAs(serverUser), InitContainers: []corev1.Container{copied},
		// On a control-plane node if the cluster has no other.
		Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
			{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists},
		},
	}
	for _, path := range slices.Sorted(maps.Keys(volumes)) {
		pod.Volumes = append(pod.Volumes, volumes[path])
		server.VolumeMounts = append(server.VolumeMounts,
			corev1.VolumeMount{Name: volumes[path].Name, MountPath: path, ReadOnly: path != "/tmp"})
	}
	pod.Containers = []corev1.Container{server}
	return pod
}
