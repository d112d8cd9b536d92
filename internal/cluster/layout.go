package cluster

// Layout is where a distribution keeps the scheduler's files on a control-plane
// node. Paths are as the node sees them.
type Layout struct {
	Name string
	// Kubeconfig is the default scheduler's own kubeconfig. Its presence is
	// what makes a machine a control-plane node.
	Kubeconfig string
	// Manifest is the static pod file that runs the scheduler; empty where it
	// runs without a pod.
	Manifest string
	// Runs is RunsAsStaticPod or RunsInProcess.
	Runs string
	// Pod is the name of the scheduler's static pod before "-<node>".
	Pod string
}

// Layouts returns the known layouts in the order in which they are looked for.
// The paths come from: platform9/nodelet (masterconfig/base/centos/master.yaml),
// kubernetes (cmd/kubeadm/app/constants), k3s (pkg/daemons/control/deps), rke2
// (pkg/podtemplate), k0s (pkg/config/cfgvars.go), microk8s
// (microk8s-resources/default-args/kube-scheduler).
func Layouts() []Layout {
	return []Layout{
		{Name: "pmk", Kubeconfig: "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml", Manifest: "/etc/pf9/kube.d/master.yaml", Runs: RunsAsStaticPod, Pod: "k8s-master"},
		{Name: "rke2", Kubeconfig: "/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig", Manifest: "/var/lib/rancher/rke2/agent/pod-manifests/kube-scheduler.yaml", Runs: RunsAsStaticPod, Pod: "kube-scheduler"},
		{Name: "k3s", Kubeconfig: "/var/lib/rancher/k3s/server/cred/scheduler.kubeconfig", Runs: RunsInProcess},
		{Name: "k0s", Kubeconfig: "/var/lib/k0s/pki/scheduler.conf", Runs: RunsInProcess},
		{Name: "microk8s", Kubeconfig: "/var/snap/microk8s/current/credentials/scheduler.config", Runs: RunsInProcess},
		{Name: "kubeadm", Kubeconfig: "/etc/kubernetes/scheduler.conf", Manifest: "/etc/kubernetes/manifests/kube-scheduler.yaml", Runs: RunsAsStaticPod, Pod: "kube-scheduler"},
	}
}

// layoutNamed returns the layout of a name.
func layoutNamed(name string) (Layout, bool) {
	for _, layout := range Layouts() {
		if layout.Name == name {
			return layout, true
		}
	}
	return Layout{}, false
}
