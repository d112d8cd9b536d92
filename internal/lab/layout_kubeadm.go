//go:build linux

package lab

import "github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"

const (
	kubeadmDir = "/etc/kubernetes"
	kubeadmPKI = kubeadmDir + "/pki"
)

// kubeadmLayout describes a cluster that kubeadm of the release creates.
func kubeadmLayout() layout {
	return layout{
		name:       LayoutKubeadm,
		port:       kubeadm.Port,
		admin:      kubeadmDir + "/admin.conf",
		proxy:      "/var/lib/kube-proxy/kubeconfig.conf",
		staticPods: kubeadmDir + "/manifests",
		nodeName:   func(hostName, _ string) string { return hostName },
	}
}
