//go:build linux

package lab

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

// imagePrefix is the repository prefix of a lab's images. No registry serves "localhost", so they
// are never pulled.
const imagePrefix = "localhost/pmk-sched-lab/"

// Image names that are the same for every release.
const (
	// PauseImage is the sandbox image, also for pods that only have to exist: it waits, and exits
	// at once on SIGTERM.
	PauseImage = imagePrefix + "pause:v1"
	// BusyboxImage has a shell and the tools of busybox.
	BusyboxImage = imagePrefix + "busybox:v1"
)

// componentImage returns the image name of a control-plane component, such as
// "localhost/pmk-sched-lab/kube-scheduler:v1.24.3".
func componentImage(component string, r versions.Release) string {
	return imagePrefix + component + ":" + strings.ReplaceAll(r.String(), "+", "_")
}

// hostMount is a directory of the node that is mounted into a container.
type hostMount struct{ name, host, container string }

func (m hostMount) volume() corev1.Volume {
	kind := corev1.HostPathDirectoryOrCreate
	return corev1.Volume{Name: m.name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: m.host, Type: &kind},
	}}
}

type component struct {
	name    string
	release versions.Release
	args    []string
	mounts  []hostMount
}

func (c component) container() corev1.Container {
	out := corev1.Container{
		Name:            c.name,
		Image:           componentImage(c.name, c.release),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         append([]string{c.name}, c.args...),
	}
	for _, m := range c.mounts {
		out.VolumeMounts = append(out.VolumeMounts,
			corev1.VolumeMount{Name: m.name, MountPath: m.container, ReadOnly: true})
	}
	return out
}

// staticPod renders the manifest of a pod in kube-system on the host network.
func staticPod(name string, components ...component) ([]byte, error) {
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem},
		Spec:       corev1.PodSpec{HostNetwork: true, PriorityClassName: "system-node-critical"},
	}
	seen := map[string]bool{}
	for _, c := range components {
		pod.Spec.Containers = append(pod.Spec.Containers, c.container())
		for _, m := range c.mounts {
			if !seen[m.name] {
				seen[m.name] = true
				pod.Spec.Volumes = append(pod.Spec.Volumes, m.volume())
			}
		}
	}
	data, err := yaml.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("write static pod %s: %w", name, err)
	}
	return data, nil
}

// in returns paths below dir as flag values.
func in(dir string) func(flag, file string) string {
	return func(flag, file string) string { return "--" + flag + "=" + path.Join(dir, file) }
}
