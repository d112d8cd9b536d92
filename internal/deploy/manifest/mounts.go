package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Volume names in the scheduler's pods.
const (
	// KubeconfigVolume is the volume with the kubeconfig: a ConfigMap, or the node's own file.
	KubeconfigVolume = "kubeconfig-file"
	// CredentialsVolume is the volume with the Secret that has certificate and key.
	CredentialsVolume = "credentials"
)

// mounts are the objects that the pods mount, with their volumes and volume mounts.
type mounts struct {
	objects []runtime.Object
	volumes []corev1.Volume
	places  []corev1.VolumeMount
}

func (m *mounts) add(volume corev1.Volume, place string, objects ...runtime.Object) {
	m.objects = append(m.objects, objects...)
	m.volumes = append(m.volumes, volume)
	m.places = append(m.places, corev1.VolumeMount{Name: volume.Name, MountPath: place, ReadOnly: true})
}

func (s Scheduler) mounts() mounts {
	var m mounts
	if s.Credentials.Mode == ModeNode {
		secret := s.credentialsSecret()
		m.add(secretVolume(CredentialsVolume, secret.Name), credentialsDir, secret)
	}
	if s.Credentials.Mode == ModeHostPath {
		m.add(hostFileVolume(KubeconfigVolume, s.Credentials.HostPath), KubeconfigPath(s.Name))
	} else {
		kubeconfig := s.kubeconfigMap()
		m.add(configMapVolume(KubeconfigVolume, kubeconfig.Name), kubeconfigDir, kubeconfig)
	}
	configuration := s.configurationMap()
	m.add(configMapVolume("config-file", configuration.Name), configDir(s.Name), configuration)
	if len(s.Configuration.Policy) > 0 {
		m.objects = append(m.objects, s.policyMap()) // read from the API server, not mounted
	}
	if len(s.ExtenderClients) > 0 {
		secret := s.extenderClientsSecret()
		m.add(secretVolume("client-certificates", secret.Name), extenderClientsDir, secret)
	}
	return m
}

// credentialsSecret holds the files to which the kubeconfig refers.
func (s Scheduler) credentialsSecret() *corev1.Secret {
	data := map[string][]byte{"ca.crt": s.Credentials.CA, "tls.crt": s.Credentials.Cert, "tls.key": s.Credentials.Key}
	immutable := true
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: s.meta(hashed(s.Name+"-credentials", data)),
		Immutable:  &immutable,
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// kubeconfigMap holds the kubeconfig.
func (s Scheduler) kubeconfigMap() *corev1.ConfigMap {
	return hashedMap(s.meta("kubeconfig-for-"+s.Name), kubeconfigKey(s.Name), s.Credentials.kubeconfig())
}

// configurationMap holds the scheduler configuration.
func (s Scheduler) configurationMap() *corev1.ConfigMap {
	return hashedMap(s.meta(s.Name+"-config"), s.Name+".yaml", s.Configuration.YAML)
}

// hashedMap returns an immutable ConfigMap with one key. A hash of the content follows its name.
func hashedMap(meta metav1.ObjectMeta, key string, content []byte) *corev1.ConfigMap {
	immutable := true
	meta.Name = hashed(meta.Name, map[string][]byte{key: content})
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta,
		Immutable:  &immutable,
		Data:       map[string]string{key: string(content)},
	}
}

func (s Scheduler) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: s.labels()}
}

func configMapVolume(name, configMap string) corev1.Volume {
	mode := int32(0o444)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, DefaultMode: &mode,
	}}}
}

// secretVolume returns a volume that only the pod's group can read. The pod's fsGroup is its user's
// group.
func secretVolume(name, secret string) corev1.Volume {
	mode := int32(0o440)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: &mode,
	}}}
}

// hostFileVolume requires the file to exist: otherwise the pod does not start, and an event names
// the file.
func hostFileVolume(name, path string) corev1.Volume {
	kind := corev1.HostPathFile
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
		Path: path, Type: &kind,
	}}}
}
