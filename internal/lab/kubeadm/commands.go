package kubeadm

import (
	"fmt"
	"path"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The preflight checks are skipped: they pull images, and look for a service manager and for kernel
// modules of the machine. CoreDNS and kube-proxy are skipped: a lab has no DNS, and runs kube-proxy
// as a process, since a lab's images have no iptables.

// InitArgs returns the arguments of "kubeadm init". shared uploads the certificates for further
// control-plane nodes.
func InitArgs(config string, shared bool) []string {
	args := []string{"init", "--config=" + config, "--skip-phases=preflight,addon"}
	if shared {
		args = append(args, "--upload-certs")
	}
	return args
}

// JoinArgs returns the arguments of "kubeadm join".
func JoinArgs(config string) []string {
	return []string{"join", "--config=" + config, "--skip-phases=preflight"}
}

// ImagesArgs returns the arguments for the kubeadm command that prints a cluster's images.
func ImagesArgs(config string) []string {
	return []string{"config", "images", "list", "--config=" + config}
}

// A lab does not meet all preflight checks of an upgrade. The health check's pod may run on a
// simulated worker, where it never ends.
const ignoreChecks = "--ignore-preflight-errors=all"

// UpgradeApplyArgs returns the arguments of the command that upgrades the cluster and the first
// node.
func UpgradeApplyArgs(r versions.Release) []string {
	return []string{"upgrade", "apply", r.String(), "--yes", ignoreChecks}
}

// UpgradeNodeArgs returns the arguments of the command that upgrades another node.
func UpgradeNodeArgs() []string { return []string{"upgrade", "node", ignoreChecks} }

// Components of a control plane that kubeadm runs as static pods, by their image and pod names.
func Components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// Images are a cluster's images, by the last element of their names, such as "pause".
type Images map[string]string

// ParseImages reads the output of the command with [ImagesArgs]. It must contain the images for
// every component and "pause".
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
