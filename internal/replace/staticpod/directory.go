package staticpod

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// CheckDirectory refuses a directory in which another file defines the manifest's pod too. A
// kubelet runs every regular file there whose name does not begin with a dot, backups included
// (pkg/kubelet/config/file.go, extractFromDir): one of the two pods runs, and it may be the other.
func (m *Manifest) CheckDirectory(files Files) error {
	dir := path.Dir(m.Path)
	at, err := files.Resolve(dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return problem.NodeFile("read", dir, err)
	}
	for _, entry := range entries {
		other := path.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || other == m.Path {
			continue
		}
		same, err := m.definedBy(files, other)
		if err != nil {
			return err
		}
		if same {
			return problem.Invalidf("nothing was changed; move "+other+" to another directory: the kubelet runs every file in "+
				dir+" whose name does not begin with a dot",
				"%s and %s both define the pod %s/%s", m.Path, other, namespace(m.Pod), m.Pod.Name)
		}
	}
	return nil
}

// definedBy reports whether a kubelet reads a pod with the same name from a file. It decodes less
// strictly than [Parse], reads the first document only, and skips what is not a pod.
func (m *Manifest) definedBy(files Files, name string) (bool, error) {
	at, err := files.Resolve(name)
	if err != nil {
		return false, err
	}
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link to nothing, or it was removed meanwhile
		return false, nil
	case err != nil:
		return false, problem.NodeFile("read", name, err)
	case !info.Mode().IsRegular() || info.Size() > MaxSize:
		return false, nil
	}
	file, err := files.Read(name)
	if err != nil {
		return false, err
	}
	var pod corev1.Pod
	notPod := sigsyaml.Unmarshal(file.Data, &pod) != nil || pod.APIVersion != "v1" || pod.Kind != "Pod"
	return !notPod && pod.Name == m.Pod.Name && namespace(&pod) == namespace(m.Pod) && len(pod.Spec.Containers) > 0, nil
}

// namespace returns the namespace that a kubelet puts a static pod into.
func namespace(pod *corev1.Pod) string { return cmp.Or(pod.Namespace, metav1.NamespaceDefault) }
