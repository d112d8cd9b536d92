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
)

// Annotations that a changed manifest carries, and its mirror pod with it: whoever
// reads the API sees which nodes run ours.
const (
	// AnnotationReplacement names what the manifest was changed to; the pod with
	// it is the one that was wanted.
	AnnotationReplacement = "pmk-sched.io/replacement"
	// AnnotationConfig is the hash of the configuration, so that the kubelet
	// starts the pod anew when only that changes.
	AnnotationConfig = "pmk-sched.io/config-hash"
	// AnnotationBinary is the SHA-256 of the program in the image.
	AnnotationBinary = "pmk-sched.io/binary"
)

// Mount is a file or folder of the node that a container is to see.
type Mount struct {
	// Name of the volume.
	Name string
	// HostPath is on the node, Path in the container.
	HostPath, Path string
	// Type of the hostPath volume.
	Type corev1.HostPathType
}

// Annotation is an annotation to set.
type Annotation struct{ Name, Value string }

// Change is what is to differ in a manifest. What is zero stays as it is. A change
// that was applied before is found again and not added twice.
type Change struct {
	// Container is the one container that is touched.
	Container string
	// Program is what it has to run: the name of the binary.
	Program string
	// Image to run.
	Image string
	// PullIfNotPresent sets the pull policy.
	PullIfNotPresent bool
	// Config is the value of the flag --config, or of Flag where that is named.
	Config string
	// Flag is the name of another flag to set; empty is config.
	Flag string
	// Mount is a volume and its mount; nil for none.
	Mount *Mount
	// RunAsRoot has the container run as root unless the manifest says as whom.
	RunAsRoot bool
	// Annotations to set on the pod.
	Annotations []Annotation
	// UID of the pod, which is otherwise the hash of the file. A pod whose UID stays
	// is updated in place: only containers that changed are restarted, see Restarts.
	UID types.UID
}

// Apply returns the manifest with the change made. Nothing else is changed: the
// result is decoded strictly, and compared with the old pod.
func (m *Manifest) Apply(c Change) ([]byte, error) {
	e := &editor{Manifest: m, change: c}
	out, err := e.apply()
	if err != nil {
		return nil, &Error{Err: fmt.Errorf("change static pod %s: %w", m.Path, err), Try: "nothing was touched", Input: true}
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
		return nil, fmt.Errorf("the changed manifest is not one: %w", errors.Unwrap(err))
	}
	if !equality.Semantic.DeepEqual(want, got.Pod) {
		return nil, errors.New("the changed manifest would not mean what it should: the file is written in a way that is not understood here")
	}
	return out, nil
}

// on makes the change on the decoded pod: it is what the changed text has to mean.
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
		if c.RunAsRoot && !saysUser(pod, container) {
			if container.SecurityContext == nil {
				container.SecurityContext = &corev1.SecurityContext{}
			}
			root := int64(0)
			container.SecurityContext.RunAsUser = &root
		}
		c.mountIn(pod, container)
		return c.flagIn(container)
	}
	return fmt.Errorf("it has no container %s", c.Container)
}

// saysUser reports whether the manifest says as whom a container runs.
func saysUser(pod *corev1.Pod, c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil ||
		pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.RunAsUser != nil
}

func (c Change) flagIn(container *corev1.Container) error {
	if _, err := Words(container, c.Program); err != nil || c.Config == "" {
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

// flag is the flag to set, as it is written.
func (c Change) flag() string { return "--" + cmp.Or(c.Flag, "config") }

// place is where a word of a list is, or where it has to come.
type place struct {
	index   int
	there   bool
	command bool // the list is the command, not the arguments
}

// flagPlace finds the flag, the last one where there are more; or the place after
// the program.
func (c Change) flagPlace(container *corev1.Container) (*[]string, place, error) {
	for _, list := range []struct {
		words   *[]string
		command bool
	}{{&container.Args, false}, {&container.Command, true}} {
		for i := len(*list.words) - 1; i >= 0; i-- {
			switch word := (*list.words)[i]; {
			case word == c.flag():
				return nil, place{}, fmt.Errorf("%s and its value are two words: write it as %[1]s=VALUE", word)
			case strings.HasPrefix(word, c.flag()+"="):
				return list.words, place{index: i, there: true, command: list.command}, nil
			}
		}
	}
	if len(container.Args) > 0 {
		return &container.Args, place{}, nil
	}
	return &container.Command, place{index: 1, command: true}, nil
}

func (c Change) mountIn(pod *corev1.Pod, container *corev1.Container) {
	if c.Mount == nil {
		return
	}
	kind := c.Mount.Type
	volume := corev1.Volume{Name: c.Mount.Name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: c.Mount.HostPath, Type: &kind}}}
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

// InContainer returns where a container sees a path of the node through the volumes that it
// has already; "" if it does not.
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

// OnHost is the other way: which path of the node a path in the container is.
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

// container is the YAML of the container that is changed.
func (e *editor) container() *yaml.Node {
	return named(child(child(e.root, "spec"), "containers"), e.change.Container)
}

// hashesImageOnly is the first minor whose kubelet tells a container by its name and
// image alone (pkg/kubelet/container/helpers.go, pickFieldsToHash); those before
// looked at all of it.
const hashesImageOnly = 31

// Restarts reports whether a kubelet of that minor of Kubernetes 1 restarts a
// container because of how it changed in a pod whose UID stayed.
func Restarts(minor int, before, after *corev1.Container) bool {
	if minor >= hashesImageOnly {
		return before.Image != after.Image
	}
	return !equality.Semantic.DeepEqual(before, after)
}
