package staticpod

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Annotations on a changed manifest. The mirror pod has them too, so that the API shows which nodes
// run a replacement.
const (
	// AnnotationReplacement identifies the replacement. Watch uses it to recognize the new pod.
	AnnotationReplacement = ownership.AnnotationReplacement
	// AnnotationConfig is the configuration's hash, so that the kubelet recreates the pod when only
	// the configuration changes.
	AnnotationConfig = "pmk-sched.io/config-hash"
	// AnnotationBinary is the SHA-256 of the scheduler binary in the image.
	AnnotationBinary = "pmk-sched.io/binary"
)

// Mount is a file or directory on the node to mount into a container.
type Mount struct {
	// Name is the volume's name.
	Name string
	// HostPath is the path on the node, Path the one in the container.
	HostPath, Path string
	// Type is the hostPath volume's type.
	Type corev1.HostPathType
}

// Annotation is an annotation to set.
type Annotation struct{ Name, Value string }

// Change describes an edit to a manifest. Zero fields change nothing. Applying the same Change
// twice gives the same manifest.
type Change struct {
	// Container is the name of the container to change.
	Container string
	// Program is the name of the binary that the container must run.
	Program string
	// Image is the image to run.
	Image string
	// PullIfNotPresent sets the pull policy to IfNotPresent.
	PullIfNotPresent bool
	// Config is the value of --config, or of the flag that Flag names.
	Config string
	// Flag is the name of the flag to set, also to an empty value. The default is config, which is
	// set if Config is not empty.
	Flag string
	// Mount is a volume to mount. It may be nil.
	Mount *Mount
	// RunAsRoot sets runAsUser to 0 unless the manifest sets a user.
	RunAsRoot bool
	// Annotations are set on the pod.
	Annotations []Annotation
	// UID is the pod's UID; by default it is the file's hash. The kubelet updates a pod with an
	// unchanged UID in place and restarts only changed containers: see Restarts.
	UID types.UID
}

// Apply returns the changed manifest. Everything else is unchanged: Apply decodes the result
// strictly and compares it with the old pod.
func (m *Manifest) Apply(c Change) ([]byte, error) {
	e := &editor{Manifest: m, change: c}
	out, err := e.apply()
	if err != nil {
		return nil, problem.Invalidf("nothing was changed", "change static pod %s: %w", m.Path, err)
	}
	return out, nil
}

func (e *editor) apply() ([]byte, error) {
	want := e.Pod.DeepCopy()
	if err := e.change.on(want); err != nil {
		return nil, err
	}
	for _, edit := range []func() error{e.metadata, e.image, e.command, e.mount, e.user} {
		if err := edit(); err != nil {
			return nil, err
		}
	}
	out := e.text.with(e.splices)
	got, err := Parse(e.Path, out)
	if err != nil {
		return nil, fmt.Errorf("decode the changed manifest: %w", errors.Unwrap(err))
	}
	if !equality.Semantic.DeepEqual(want, got.Pod) {
		return nil, errors.New("the changed manifest decodes to an unexpected pod: the file uses YAML that is not supported")
	}
	return out, nil
}

// on applies the change to the decoded pod. The edited text must decode to the same pod.
func (c Change) on(pod *corev1.Pod) error {
	for _, a := range c.Annotations {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[a.Name] = a.Value
	}
	if c.UID != "" {
		pod.UID = c.UID
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if container.Name != c.Container {
			continue
		}
		if c.Image != "" {
			container.Image = c.Image
		}
		if c.PullIfNotPresent {
			container.ImagePullPolicy = corev1.PullIfNotPresent
		}
		if c.RunAsRoot && !setsUser(pod, container) {
			if container.SecurityContext == nil {
				container.SecurityContext = &corev1.SecurityContext{}
			}
			root := int64(0)
			container.SecurityContext.RunAsUser = &root
		}
		c.mountIn(pod, container)
		return c.flagIn(container)
	}
	return fmt.Errorf("no container %s", c.Container)
}

// setsUser reports whether the manifest sets a container's user.
func setsUser(pod *corev1.Pod, c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil ||
		pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.RunAsUser != nil
}

func (c Change) flagIn(container *corev1.Container) error {
	if _, err := Words(container, c.Program); err != nil || !c.setsFlag() {
		return err
	}
	list, i, err := c.flagPlace(container)
	if err != nil {
		return err
	}
	word := c.flag() + "=" + c.Config
	if i.there {
		(*list)[i.index] = word
		return nil
	}
	changed := append([]string{}, (*list)[:i.index]...)
	*list = append(append(changed, word), (*list)[i.index:]...)
	return nil
}

func (c Change) setsFlag() bool { return c.Config != "" || c.Flag != "" }

// flag returns the flag to set, with its dashes.
func (c Change) flag() string { return "--" + cmp.Or(c.Flag, "config") }

func (c Change) mountIn(pod *corev1.Pod, container *corev1.Container) {
	if c.Mount == nil {
		return
	}
	kind := c.Mount.Type
	volume := corev1.Volume{Name: c.Mount.Name,
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: c.Mount.HostPath, Type: &kind}}}
	mount := corev1.VolumeMount{Name: c.Mount.Name, MountPath: c.Mount.Path, ReadOnly: true}
	replaced := false
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == c.Mount.Name {
			pod.Spec.Volumes[i], replaced = volume, true
		}
	}
	if !replaced {
		pod.Spec.Volumes = append([]corev1.Volume{volume}, pod.Spec.Volumes...)
	}
	for i := range container.VolumeMounts {
		if container.VolumeMounts[i].Name == c.Mount.Name {
			container.VolumeMounts[i] = mount
			return
		}
	}
	container.VolumeMounts = append([]corev1.VolumeMount{mount}, container.VolumeMounts...)
}

// InContainer returns the path in the container for a path on the node that an existing volume
// mounts; "" if none does.
func InContainer(pod *corev1.Pod, container *corev1.Container, hostPath string) string {
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.HostPath == nil || mount.SubPath != "" || mount.SubPathExpr != "" {
				continue
			}
			host := path.Clean(volume.HostPath.Path)
			if hostPath == host {
				return mount.MountPath
			}
			if rest, below := strings.CutPrefix(hostPath, strings.TrimSuffix(host, "/")+"/"); below {
				return path.Join(mount.MountPath, rest)
			}
		}
	}
	return ""
}

// OnHost is the inverse of InContainer: it returns the path on the node for a path in the
// container.
func OnHost(pod *corev1.Pod, container *corev1.Container, inContainer string) string {
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.HostPath == nil || mount.SubPath != "" || mount.SubPathExpr != "" {
				continue
			}
			if inContainer == path.Clean(mount.MountPath) {
				return path.Clean(volume.HostPath.Path)
			}
			if rest, below := strings.CutPrefix(inContainer, strings.TrimSuffix(path.Clean(mount.MountPath), "/")+"/"); below {
				return path.Join(volume.HostPath.Path, rest)
			}
		}
	}
	return ""
}

// container returns the YAML node for the container to change.
func (e *editor) container() *yaml.Node {
	return named(child(child(e.root, "spec"), "containers"), e.change.Container)
}

// Restarts reports whether the kubelet in Kubernetes 1.minor restarts a container that changed in a
// pod with an unchanged UID.
func Restarts(minor int, before, after *corev1.Container) bool {
	if (versions.Release{Major: 1, Minor: minor}).Rules().ComparesImagesOnly {
		return before.Image != after.Image
	}
	return !equality.Semantic.DeepEqual(before, after)
}
