package kubeadm

import "github.com/pmk-sched/pmk-sched/versions"

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

// imagesArgs returns the arguments for the kubeadm command that prints a cluster's images.
func imagesArgs(config string) []string {
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
