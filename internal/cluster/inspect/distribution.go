package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// distribution lists the traits of a distribution. Each of them identifies it.
type distribution struct {
	name string
	// layout of its control-plane nodes, or LayoutManaged.
	layout string
	// version is a part of the API server's version.
	version string
	// provider is a prefix of a node's spec.providerID.
	provider string
	// label is a prefix of the key of a label or annotation of a node.
	label string
	// pod is the name of a static pod, before "-<node>".
	pod string
}

// distributions are tried in order. One that is based on another comes first.
func distributions() []distribution {
	return []distribution{
		{name: "pmk", layout: "pmk", pod: "k8s-master"},
		{name: "rke2", layout: "rke2", version: "+rke2", provider: "rke2://", label: "rke2.io/"},
		{name: "k3s", layout: "k3s", version: "+k3s", provider: "k3s://", label: "k3s.io/"},
		{name: "k0s", layout: "k0s", version: "+k0s", label: "node.k0sproject.io/"},
		{name: "microk8s", layout: "microk8s", label: "microk8s.io/"},
		{name: "microk8s", layout: "microk8s", label: "node.kubernetes.io/microk8s-controlplane"},
		{name: "eks", layout: LayoutManaged, version: "-eks-", label: "eks.amazonaws.com/"},
		{name: "gke", layout: LayoutManaged, version: "-gke.", label: "cloud.google.com/gke-"},
		{name: "aks", layout: LayoutManaged, label: "kubernetes.azure.com/"},
		{name: "ack", layout: LayoutManaged, version: "-aliyun.", label: "alibabacloud.com/nodepool-id"},
		{name: "iks", layout: LayoutManaged, version: "+IKS", label: "ibm-cloud.kubernetes.io/"},
		{name: "tke", layout: LayoutManaged, version: "-tke."},
		{name: "doks", layout: LayoutManaged, label: "doks.digitalocean.com/"},
		{name: "lke", layout: LayoutManaged, label: "lke.linode.com/"},
		{name: "oke", layout: LayoutManaged, label: "oke.oraclecloud.com/"},
		{name: "openshift", layout: LayoutUnknown, label: "node.openshift.io/", pod: "openshift-kube-scheduler"},
		{name: "kind", layout: "kubeadm", provider: "kind://"},
		{name: "minikube", layout: "kubeadm", label: "minikube.k8s.io/"},
		{name: "kubeadm", layout: "kubeadm", label: "kubeadm.alpha.kubernetes.io/", pod: "kube-scheduler"},
	}
}

// traits are properties of a cluster that identify its distribution.
type traits struct {
	version    string
	providers  []string
	keys       map[string]bool
	staticPods map[string]bool
}

func (s *traits) addNodes(nodes []corev1.Node) {
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	for _, node := range nodes {
		s.providers = append(s.providers, node.Spec.ProviderID)
		for key := range node.Labels {
			s.keys[key] = true
		}
		for key := range node.Annotations {
			s.keys[key] = true
		}
	}
}

func (s *traits) addStaticPod(name string) {
	if s.staticPods == nil {
		s.staticPods = map[string]bool{}
	}
	s.staticPods[name] = true
}

func (s *traits) matches(d distribution) bool {
	hasPrefix := func(values []string, prefix string) bool {
		return prefix != "" && slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, prefix) })
	}
	return (d.version != "" && strings.Contains(s.version, d.version)) ||
		hasPrefix(s.providers, d.provider) ||
		hasPrefix(slices.Collect(maps.Keys(s.keys)), d.label) ||
		s.staticPods[d.pod]
}

// identifyBy returns the distribution and the layout. If the files of this node
// are of a known layout, that takes precedence over every other trait.
func identifyBy(s traits, fileLayout string) (name, layout string) {
	for _, candidate := range distributions() {
		if (fileLayout == "" || candidate.layout == fileLayout) && s.matches(candidate) {
			return candidate.name, candidate.layout
		}
	}
	if fileLayout != "" {
		return fileLayout, fileLayout
	}
	return DistributionUnknown, LayoutUnknown
}

// identify sets the distribution and how it runs the scheduler.
func (d *detector) identify(context.Context) {
	fileLayout := ""
	if d.info.Node.ControlPlane {
		fileLayout = d.info.Layout
	}
	d.info.Distribution, d.info.Layout = identifyBy(d.traits, fileLayout)
	layout, known := LayoutNamed(d.info.Layout)
	switch {
	case len(d.info.Scheduler.Pods) > 0:
		d.info.Scheduler.Runs = RunsAsStaticPod
	case d.info.Layout == LayoutManaged:
		d.info.Scheduler.Runs = RunsManaged
	case known:
		d.info.Scheduler.Runs = layout.Runs
	}
	if d.nodesListed && d.info.ControlPlane.Count == 0 {
		if d.info.Layout == LayoutManaged {
			d.warn(
				"the provider (%s) manages the control plane, which has no nodes in the cluster: deploy to other nodes, with a "+
					"ServiceAccount", d.info.Distribution)
			return
		}
		d.warn("no control-plane node found: no node has one of the labels %s", strings.Join(controlPlaneLabels(), ", "))
	}
}
