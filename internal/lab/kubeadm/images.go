package kubeadm

import (
	"fmt"
	"path"
	"strings"
)

// Components of a control plane that kubeadm runs as static pods, by the names of their images and
// of the pods.
func Components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// Images are the images of a cluster, by the last element of their names, such as "pause".
type Images map[string]string

// ParseImages reads the output of the command with [ImagesArgs]. The images of every component and
// "pause" must be in it.
func ParseImages(list string) (Images, error) {
	images := Images{}
	for ref := range strings.FieldsSeq(list) {
		name, _, tagged := strings.Cut(path.Base(ref), ":")
		if tagged {
			images[name] = ref
		}
	}
	for _, name := range append(Components(), "pause") {
		if images[name] == "" {
			return nil, fmt.Errorf("read kubeadm's list of images: no image %s in %q", name, list)
		}
	}
	return images, nil
}

// EtcdVersion returns the version of etcd in its image: "v3.5.3" for a tag "3.5.3-0".
func (i Images) EtcdVersion() string {
	_, tag, _ := strings.Cut(path.Base(i["etcd"]), ":")
	version, _, _ := strings.Cut(tag, "-")
	return "v" + strings.TrimPrefix(version, "v")
}
