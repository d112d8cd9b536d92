package inspect

// Layout describes where a distribution keeps the scheduler's files on a control-plane node. All
// paths are paths on the node.
type Layout struct {
	Name string
	// Kubeconfig is the default scheduler's kubeconfig. It identifies a control-plane node.
	Kubeconfig string
	// AdminKubeconfig is the administrator's kubeconfig on every control-plane node. It is empty if
	// a node may lack it.
	AdminKubeconfig string
	// Manifest is the scheduler's static pod manifest. It is empty if the scheduler runs without a
	// pod.
	Manifest string
	// Runs is RunsAsStaticPod, RunsInContainer or RunsInProcess.
	Runs string
	// Pod is the scheduler's static pod name before "-<node>".
	Pod string
	// SingleFile reports whether the kubelet reads the manifest as a single file instead of a manifest
	// directory.
	SingleFile bool
	// ConfigDir is the directory, on the node and in the container alike, with the configurations that
	// pmk-sched writes for the static pod.
	ConfigDir string
	// EnvFile contains the settings from which a node agent makes the manifest. It is empty if no
	// node agent does so.
	EnvFile string
	// Rewriter is the program that rewrites the manifest when it starts, or empty. Persist is the
	// user's remedy.
	Rewriter, Persist string
	// APIServerName is a name in all API servers' certificates, for a layout whose kubeconfigs name
	// the address of their node's API server: with it, one kubeconfig serves on each node over
	// loopback. If it is empty, the kubeconfigs name localhost.
	APIServerName string
	// DisableScheduler is the user's way to disable a scheduler that runs in process.
	DisableScheduler string
	// Owner writes the static pod or starts the container, and undoes changes that others make.
	// Setting is the user's way to change the default scheduler then. They are empty if pmk-sched can
	// replace it, or if it runs in process.
	Owner, Setting string
}

// ManagedConfigDir is the ConfigDir that only pmk-sched uses.
const ManagedConfigDir = "/etc/kubernetes/pmk-sched"

// layouts returns the known layouts in detection order. The paths come from: platform9/nodelet
// (masterconfig/base/centos/master.yaml), kubernetes (cmd/kubeadm/app/constants), k3s
// (pkg/daemons/control/deps), rke2 (pkg/podtemplate), k0s (pkg/config/cfgvars.go), microk8s
// (microk8s-resources/default-args/kube-scheduler), kops (nodeup/pkg/model/kube_scheduler.go),
// talos (pkg/machinery/constants), rke (pki/constants.go),
// openshift/cluster-kube-scheduler-operator (bindata/assets/kube-scheduler), Azure/aks-engine
// (parts/k8s/manifests).
func layouts() []Layout {
	return []Layout{
		{
			Name: "pmk", Kubeconfig: "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml",
			AdminKubeconfig: "/etc/pf9/kube.d/kubeconfigs/admin.yaml", Manifest: "/etc/pf9/kube.d/master.yaml",
			Runs: RunsAsStaticPod, Pod: "k8s-master",
			SingleFile: true, ConfigDir: "/etc/pf9/kube.d/configs", EnvFile: "/etc/pf9/kube.env",
			Rewriter: "PMK's node agent", Persist: "replace again to repair it",
		},
		{
			Name: "rke2", Kubeconfig: "/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig",
			Manifest: "/var/lib/rancher/rke2/agent/pod-manifests/kube-scheduler.yaml", Runs: RunsAsStaticPod,
			Pod:       "kube-scheduler",
			ConfigDir: ManagedConfigDir, Rewriter: "rke2",
			Persist: "kube-scheduler-image and kube-scheduler-arg in its config.yaml persist",
		},
		{Name: "k3s", Kubeconfig: "/var/lib/rancher/k3s/server/cred/scheduler.kubeconfig", Runs: RunsInProcess,
			DisableScheduler: "start k3s with --disable-scheduler"},
		{Name: "k0s", Kubeconfig: "/var/lib/k0s/pki/scheduler.conf", Runs: RunsInProcess,
			DisableScheduler: "start the controller with --disable-components=kube-scheduler"},
		{Name: "microk8s", Kubeconfig: "/var/snap/microk8s/current/credentials/scheduler.config", Runs: RunsInProcess,
			DisableScheduler: "remove kube-scheduler from the arguments of kubelite"},
		{Name: "kops", Kubeconfig: "/var/lib/kube-scheduler/kubeconfig",
			Manifest: "/etc/kubernetes/manifests/kube-scheduler.manifest", Runs: RunsAsStaticPod, Pod: "kube-scheduler",
			Owner:   "nodeup, which writes the manifest again when the node starts",
			Setting: "set spec.kubeScheduler with `kops edit cluster`"},
		{Name: "talos", Kubeconfig: "/system/secrets/kubernetes/kube-scheduler/kubeconfig", Runs: RunsAsStaticPod,
			Pod: "kube-scheduler", Owner: "Talos, whose nodes have no manifest to edit",
			Setting: "set cluster.scheduler in the machine configuration"},
		{Name: "rke1", Kubeconfig: "/etc/kubernetes/ssl/kubecfg-kube-scheduler.yaml", Runs: RunsInContainer,
			Owner:   "rke, which starts it as a container of Docker",
			Setting: "set services.scheduler in cluster.yml, or in the cluster's configuration in Rancher"},
		// The kubeconfig is in a directory for the static pod's revision.
		{Name: "openshift", Runs: RunsAsStaticPod, Pod: "openshift-kube-scheduler",
			Owner:   "the kube-scheduler operator, which writes the manifest again",
			Setting: "set spec.profile of `oc edit scheduler cluster`"},
		// It uses the kubelet's kubeconfig, which workers have too.
		{Name: "aks-engine", Runs: RunsAsStaticPod, Pod: "kube-scheduler",
			Owner:   "aks-engine, which writes the manifest when the node is made",
			Setting: "set kubernetesConfig.schedulerConfig in the API model"},
		{Name: "kubeadm", Kubeconfig: "/etc/kubernetes/scheduler.conf", AdminKubeconfig: "/etc/kubernetes/admin.conf",
			Manifest: "/etc/kubernetes/manifests/kube-scheduler.yaml", Runs: RunsAsStaticPod, Pod: "kube-scheduler",
			ConfigDir:     ManagedConfigDir,
			APIServerName: "kubernetes.default.svc"}, // cmd/kubeadm/app/util/pkiutil, GetAPIServerAltNames
	}
}

// LayoutNamed returns the layout with a name.
func LayoutNamed(name string) (Layout, bool) {
	for _, layout := range layouts() {
		if layout.Name == name {
			return layout, true
		}
	}
	return Layout{}, false
}
