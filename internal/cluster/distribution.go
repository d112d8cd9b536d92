package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// distribution is how to tell who made a cluster. One mark is enough.
type distribution struct {
	name string
	// layout that its control-plane nodes have, or LayoutManaged.
	layout string
	// version is a part of the version that the API server reports.
	version string
	// provider is the beginning of a node's spec.providerID.
	provider string
	// label is the beginning of a label's or annotation's key on a node.
	label string
	// pod is the name of a static pod, before "-<node>".
	pod string
}

// distributions are tried in order: whoever builds on another's way comes first.
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

// signs is what tells distributions apart, as far as the API server shows it.
type signs struct {
	version    string
	providers  []string
	keys       map[string]bool
	staticPods map[string]bool
}

func (s *signs) addNodes(nodes []corev1.Node) {
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

func (s *signs) addStaticPod(name string) {
	if s.staticPods == nil {
		s.staticPods = map[string]bool{}
	}
	s.staticPods[name] = true
}

func (s *signs) fit(d distribution) bool {
	begins := func(values []string, prefix string) bool {
		return prefix != "" && slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, prefix) })
	}
	return (d.version != "" && strings.Contains(s.version, d.version)) ||
		begins(s.providers, d.provider) ||
		begins(slices.Collect(maps.Keys(s.keys)), d.label) ||
		s.staticPods[d.pod]
}

// recogniseBy returns distribution and layout. The files of the node that the
// caller runs on, if they are of a known layout, outweigh every other sign.
func recogniseBy(s signs, fileLayout string) (name, layout string) {
	for _, candidate := range distributions() {
		if (fileLayout == "" || candidate.layout == fileLayout) && s.fit(candidate) {
			return candidate.name, candidate.layout
		}
	}
	if fileLayout != "" {
		return fileLayout, fileLayout
	}
	return DistributionUnknown, LayoutUnknown
}

// recognise tells whose cluster it is, and from that how its scheduler runs.
func (d *detector) recognise(context.Context) {
	fileLayout := ""
	if d.info.Node.ControlPlane {
		fileLayout = d.info.Layout
	}
	d.info.Distribution, d.info.Layout = recogniseBy(d.signs, fileLayout)
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
			d.warn("the control plane has no nodes here, its provider (%s) runs it: a scheduler has to run on other nodes, with credentials of its own", d.info.Distribution)
			return
		}
		d.warn("no control-plane node found: no node carries one of the labels %s", strings.Join(controlPlaneLabels(), ", "))
	}
}
