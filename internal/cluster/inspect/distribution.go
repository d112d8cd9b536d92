package inspect

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// distribution lists a distribution's traits. Each trait identifies it.
type distribution struct {
	name string
	// layout on its control-plane nodes, or LayoutManaged.
	layout string
	// product is a hosted control plane's name for the user.
	product string
	// agentless is set if its control plane can run on machines that are not nodes.
	agentless bool
	// version is part of the API server's version.
	version string
	// provider is a prefix of a node's spec.providerID.
	provider string
	// label is a prefix of a node's label or annotation key.
	label string
	// osImage is a prefix of a node's operating system name.
	osImage string
	// pod is a static pod's name, before "-<node>".
	pod string
	// configMap is a ConfigMap's name in kube-system, configMapLabel a ConfigMap's label, key=value.
	// They are read only on a cluster without control-plane nodes.
	configMap, configMapLabel string
	// note is a fact about a hosted control plane that cannot be known from the cluster.
	note string
}

const kubeadmLayout = "kubeadm"

// distributions are tried in order. One that is based on another comes first: vCluster can run k3s,
// HyperShift is OpenShift, and Kamaji and the managed services have nodes from Cluster API. A row
// with LayoutManaged applies only to a cluster without control-plane nodes: EKS Anywhere, GKE
// on-prem and aks-engine have the versions and labels of the managed services, and nodes that
// kubeadm or a tool like it made.
func distributions() []distribution {
	return []distribution{
		{name: "pmk", layout: "pmk", pod: "k8s-master"},
		// loft-sh/vcluster, pkg/controllers/resources/nodes: label vcluster.loft.sh/fake-node on nodes
		// that are not synced from the host cluster. www.vcluster.com/docs, virtual scheduler.
		{name: "vcluster", layout: LayoutManaged, product: "vCluster", label: "vcluster.loft.sh/",
			note: "whether a scheduler of this cluster places pods: only with vCluster's virtual scheduler or private nodes"},
		// gardener/gardener, pkg/apis/core/v1beta1/constants/types_constants.go: LabelWorkerPool,
		// ConfigMapNameShootInfo.
		{name: "gardener", layout: LayoutManaged, product: "Gardener", label: "worker.gardener.cloud/",
			configMap: "shoot-info"},
		// openshift/hypershift, api/hypershift/v1beta1: label hypershift.openshift.io/nodePool on nodes.
		{name: "hypershift", layout: LayoutManaged, product: "HyperShift",
			label: "hypershift.openshift.io/"},
		{name: "rke2", layout: "rke2", version: "+rke2", provider: "rke2://", label: "rke2.io/"},
		{name: "k3s", layout: "k3s", agentless: true, version: "+k3s", provider: "k3s://", label: "k3s.io/"},
		{name: "k0s", layout: "k0s", agentless: true, version: "+k0s", label: "node.k0sproject.io/"},
		{name: "microk8s", layout: "microk8s", label: "microk8s.io/"},
		{name: "microk8s", layout: "microk8s", label: "node.kubernetes.io/microk8s-controlplane"},
		{name: "eks", layout: LayoutManaged, product: "Amazon EKS", version: "-eks-", label: "eks.amazonaws.com/"},
		{name: "gke", layout: LayoutManaged, product: "Google GKE", version: "-gke.", label: "cloud.google.com/gke-"},
		{name: "aks", layout: LayoutManaged, product: "Azure AKS", label: "kubernetes.azure.com/"},
		{name: "ack", layout: LayoutManaged, version: "-aliyun.", label: "alibabacloud.com/nodepool-id"},
		{name: "iks", layout: LayoutManaged, version: "+IKS", label: "ibm-cloud.kubernetes.io/"},
		{name: "tke", layout: LayoutManaged, version: "-tke."},
		{name: "doks", layout: LayoutManaged, label: "doks.digitalocean.com/"},
		{name: "lke", layout: LayoutManaged, label: "lke.linode.com/"},
		{name: "oke", layout: LayoutManaged, label: "oke.oraclecloud.com/"},
		// clastix/kamaji, internal/resources/addons/utils/managed_labels.go: the objects for the add-ons
		// that it installs into the tenant cluster, ConfigMap kube-proxy among them.
		{name: "kamaji", layout: LayoutManaged, product: "Kamaji",
			configMapLabel: "kamaji.clastix.io/project=kamaji"},
		// kubernetes-sigs/cluster-api, api/v1beta1/common_types.go: ClusterNameAnnotation and more node
		// annotations. Control planes in Platform9's PCD are pods in the management cluster
		// (docs.platform9.com, kubernetes-clusters/architecture-and-technical-overview).
		{name: "cluster-api", layout: LayoutManaged, product: "Cluster API", label: "cluster.x-k8s.io/",
			note: "the control plane provider of Cluster API: Platform9's PCD and others leave no trace of it in the cluster"},
		// openshift/cluster-kube-scheduler-operator, bindata/assets/kube-scheduler/pod.yaml.
		// MicroShift has the label too, and no static pods.
		{name: "openshift", layout: "openshift", pod: "openshift-kube-scheduler"},
		{name: "openshift", layout: LayoutUnknown, label: "node.openshift.io/"},
		// siderolabs/talos, pkg/machinery/constants: annotations on nodes.
		{name: "talos", layout: "talos", label: "talos.dev/", osImage: "Talos "},
		// kubernetes/kops, pkg/nodelabels: label kops.k8s.io/instancegroup.
		{name: "kops", layout: "kops", label: "kops.k8s.io/"},
		// rancher/rke, k8s/node.go: node annotations. RKE2 nodes that Rancher made have different
		// annotations with this prefix.
		{name: "rke1", layout: "rke1", label: "rke.cattle.io/internal-ip"},
		{name: "rke1", layout: "rke1", label: "rke.cattle.io/external-ip"},
		{name: "rke1", layout: "rke1", label: "node-role.kubernetes.io/controlplane"},
		// Azure/aks-engine, parts/k8s/cloud-init: label on all nodes.
		{name: "aks-engine", layout: "aks-engine", label: "kubernetes.azure.com/role"},
		{name: "kind", layout: kubeadmLayout, provider: "kind://"},
		{name: "minikube", layout: kubeadmLayout, label: "minikube.k8s.io/"},
		{name: "kubeadm", layout: kubeadmLayout, label: "kubeadm.alpha.kubernetes.io/"},
	}
}

// traits are cluster properties that identify its distribution.
type traits struct {
	version    string
	providers  []string
	keys       map[string]bool
	staticPods map[string]bool
	// configMaps has the evidence from the found ConfigMaps, by name or label in the table.
	configMaps map[string]string
	// osImages are the nodes' operating system names.
	osImages []string
	// kubeconfigs are the paths at which the default scheduler's static pods may read a kubeconfig.
	kubeconfigs map[string]bool
	// nodeless is set if the cluster has no control-plane nodes.
	nodeless bool
}

func (s *traits) addNodes(nodes []corev1.Node) {
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	for _, node := range nodes {
		s.providers = append(s.providers, node.Spec.ProviderID)
		s.osImages = append(s.osImages, node.Status.NodeInfo.OSImage)
		for key := range node.Labels {
			s.keys[key] = true
		}
		for key := range node.Annotations {
			s.keys[key] = true
		}
	}
}

// keyWithPrefix returns a node's first label or annotation with a prefix, or "".
func (s *traits) keyWithPrefix(prefix string) string {
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if prefix != "" && strings.HasPrefix(key, prefix) {
			return key
		}
	}
	return ""
}

// addScheduler adds the kubeconfigs for a default scheduler in a static pod.
func (s *traits) addScheduler(pod *corev1.Pod, container *corev1.Container) {
	if s.kubeconfigs == nil {
		s.kubeconfigs = map[string]bool{}
	}
	for _, path := range kubeconfigsOf(pod, container) {
		s.kubeconfigs[path] = true
	}
}

func (s *traits) addStaticPod(name string) {
	if s.staticPods == nil {
		s.staticPods = map[string]bool{}
	}
	s.staticPods[name] = true
}

// evidence returns the trait by which the cluster is a distribution, or "".
func (s *traits) evidence(d distribution) string {
	if d.layout == LayoutManaged && !s.nodeless {
		return ""
	}
	key := s.keyWithPrefix(d.label)
	provider, osImage := withPrefix(s.providers, d.provider), withPrefix(s.osImages, d.osImage)
	layout, _ := LayoutNamed(d.name) // a kind of cluster that has its layout from another has other traits
	switch {
	case d.version != "" && strings.Contains(s.version, d.version):
		return "version " + s.version
	case provider != "":
		return "provider ID " + provider
	case osImage != "":
		return "operating system " + osImage
	case key != "":
		return "label or annotation " + key + " of a node"
	case s.staticPods[d.pod]:
		return "static pod " + d.pod
	case layout.Kubeconfig != "" && (s.kubeconfigs[layout.Kubeconfig] || s.kubeconfigs[path.Dir(layout.Kubeconfig)]):
		return "the kubeconfig " + layout.Kubeconfig + " of the scheduler's static pod"
	case d.name == kubeadmLayout && s.staticPods["kube-scheduler"] && len(s.kubeconfigs) == 0:
		return "static pod kube-scheduler"
	case s.configMaps[d.configMap] != "":
		return s.configMaps[d.configMap]
	}
	return s.configMaps[d.configMapLabel]
}

// withPrefix returns the first text that begins with a prefix, or "".
func withPrefix(texts []string, prefix string) string {
	at := slices.IndexFunc(texts, func(text string) bool { return prefix != "" && strings.HasPrefix(text, prefix) })
	if at < 0 {
		return ""
	}
	return texts[at]
}

// identifyBy returns the distribution and the trait that identifies it. If this node's files have a
// known layout, that takes precedence over every other trait.
func identifyBy(s traits, fileLayout string) (found distribution, evidence string) {
	for _, candidate := range distributions() {
		if fileLayout != "" && candidate.layout != fileLayout {
			continue
		}
		if evidence := s.evidence(candidate); evidence != "" {
			return candidate, evidence
		}
	}
	return distribution{name: fileLayout, layout: fileLayout}, ""
}

// identify sets the distribution and how it runs the scheduler.
func (d *detector) identify(ctx context.Context) {
	fileLayout := ""
	hosted := d.isHosted()
	if hosted {
		d.readConfigMaps(ctx)
	} else if d.info.Node.ControlPlane {
		fileLayout = d.info.Layout
	}
	found, evidence := identifyBy(d.traits, fileLayout)
	if hosted {
		d.describeHosted(found, evidence)
	} else {
		d.info.Distribution = cmp.Or(found.name, DistributionUnknown)
		d.info.Layout = cmp.Or(found.layout, LayoutUnknown)
	}
	layout, known := LayoutNamed(d.info.Layout)
	switch {
	case len(d.info.Scheduler.Pods) > 0:
		d.info.Scheduler.Runs = RunsAsStaticPod
	case d.info.Layout == LayoutManaged:
		d.info.Scheduler.Runs = RunsManaged
	case known:
		d.info.Scheduler.Runs = layout.Runs
	}
	if d.nodesListed && d.info.ControlPlane.Count == 0 && d.info.Hosted == nil {
		d.warn("no control-plane node found: no node has one of the labels %s",
			strings.Join(kubeapi.ControlPlaneLabels(), ", "))
	}
}
