package inspect

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDetectRecognizesHostedControlPlanes(t *testing.T) {
	const joined = "kubeadm.alpha.kubernetes.io/cri-socket"
	for _, tc := range []struct {
		want, kind, evidence string
		version              string
		node                 corev1.Node
		configMaps           map[string]map[string]string
		labelled             map[string]string
	}{
		{want: "eks", kind: "Amazon EKS", evidence: "version v1.24.3-eks-036c24b", version: "v1.24.3-eks-036c24b",
			node: node("a", annotated("cluster.x-k8s.io/machine"))},
		{want: "gke", kind: "Google GKE", evidence: "version v1.24.3-gke.100", version: "v1.24.3-gke.100", node: node("a")},
		{want: "aks", kind: "Azure AKS", evidence: "kubernetes.azure.com/cluster",
			node: node("a", labelled("kubernetes.azure.com/cluster", "x"))},
		{want: "cluster-api", kind: "Cluster API", evidence: "cluster.x-k8s.io/machine",
			node: node("a", annotated("cluster.x-k8s.io/machine"))},
		{want: "kamaji", kind: "Kamaji", evidence: "ConfigMap/kube-system/kube-proxy",
			node:     node("a", annotated("cluster.x-k8s.io/machine")),
			labelled: map[string]string{"kamaji.clastix.io/project=kamaji": "kube-proxy"}},
		{want: "hypershift", kind: "HyperShift", evidence: "hypershift.openshift.io/nodePool",
			node: node("a", labelled("node.openshift.io/os_id", "rhcos"), labelled("hypershift.openshift.io/nodePool", "x"))},
		{want: "gardener", kind: "Gardener", evidence: "worker.gardener.cloud/pool",
			node: node("a", labelled("worker.gardener.cloud/pool", "x"))},
		{want: "gardener", kind: "Gardener", evidence: "ConfigMap/kube-system/shoot-info", node: node("a"),
			configMaps: map[string]map[string]string{"kube-system/shoot-info": {}}},
		{want: "vcluster", kind: "vCluster", evidence: "vcluster.loft.sh/fake-node", version: "v1.24.3+k3s1",
			node: node("a", labelled("vcluster.loft.sh/fake-node", "true"))},
		{want: "k3s", kind: "k3s", evidence: "version v1.24.3+k3s1", version: "v1.24.3+k3s1", node: node("a")},
		{want: "k0s", kind: "k0s", evidence: "version v1.24.3+k0s", version: "v1.24.3+k0s", node: node("a")},
		{want: DistributionHosted, kind: UnknownKind, node: node("a")},
		{want: DistributionHosted, kind: UnknownKind, node: node("a", annotated(joined))},
	} {
		t.Run(tc.want+" by "+tc.evidence, func(t *testing.T) {
			if tc.version == "" {
				tc.version = "v1.24.3"
			}
			info := detect(t, &apiServer{gitVersion: tc.version, nodes: []corev1.Node{tc.node}, configMaps: tc.configMaps,
				labelled: tc.labelled})
			wants(t, info)
			if info.Distribution != tc.want || info.Layout != LayoutManaged || info.Scheduler.Runs != RunsManaged {
				t.Errorf("got %s, layout %s, runs %s", info.Distribution, info.Layout, info.Scheduler.Runs)
			}
			h := info.Hosted
			if h == nil || h.Kind != tc.kind || !strings.Contains(h.Evidence, tc.evidence) ||
				(tc.evidence == "") != (h.Evidence == "") {
				t.Fatalf("hosted: %+v", h)
			}
			if !strings.Contains(strings.Join(h.Impossible, ";"), "replace") || h.Command == "" || len(h.Unknown) < 2 {
				t.Errorf("hosted: %+v", h)
			}
		})
	}
}

func TestDetectWarnsAboutWorkersOfSeveralPlatforms(t *testing.T) {
	worker := func(name, os, architecture string) corev1.Node {
		return node(name, labelled(corev1.LabelOSStable, os), labelled(corev1.LabelArchStable, architecture))
	}
	for name, tc := range map[string]struct {
		version string
		nodes   []corev1.Node
		want    string
	}{
		"EKS": {"v1.24.3-eks-1", []corev1.Node{worker("a", "linux", "amd64"), worker("b", "linux", "arm64"),
			worker("c", "linux", "arm64")}, "build an image for linux/amd64,linux/arm64"},
		"three": {"v1.24.3-gke.1", []corev1.Node{worker("a", "linux", "s390x"), worker("b", "linux", "arm64"),
			worker("c", "linux", "ppc64le")}, "linux/arm64,linux/ppc64le,linux/s390x"},
		"one":     {"v1.24.3-eks-1", []corev1.Node{worker("a", "linux", "arm64"), worker("b", "linux", "arm64")}, ""},
		"Windows": {"v1.24.3-gke.1", []corev1.Node{worker("a", "linux", "arm64"), worker("b", "windows", "amd64")}, ""},
		"workers of a control plane in the cluster": {"v1.24.3", []corev1.Node{
			node("m", labelled("node-role.kubernetes.io/control-plane", ""), labelled(corev1.LabelArchStable, "amd64")),
			worker("b", "linux", "arm64")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			info := detect(t, &apiServer{gitVersion: tc.version, nodes: tc.nodes})
			if tc.want == "" {
				wants(t, info)
			} else {
				wants(t, info, tc.want)
			}
		})
	}
}

func TestDetectDoesNotCallAControlPlaneHostedThatHasNodes(t *testing.T) {
	const plane = "node-role.kubernetes.io/control-plane"
	capi := func(n *corev1.Node) { n.Annotations = map[string]string{"cluster.x-k8s.io/machine": "x"} }
	for name, s := range map[string]*apiServer{
		"Cluster API with kubeadm's control plane": {nodes: []corev1.Node{node("a", labelled(plane, ""), capi)},
			pods: []corev1.Pod{staticPod("kube-scheduler", "a", container("kube-scheduler", "x"))}},
		"nodes without the label": {nodes: []corev1.Node{node("a")}, pods: []corev1.Pod{
			labelledPod(staticPod("kube-scheduler", "a", container("kube-scheduler", "x")), "component", "kube-scheduler")}},
		"no nodes": {},
		"nodes are unknown": {nodes: []corev1.Node{node("a")},
			forbid: func(p string) bool { return strings.HasSuffix(p, "/nodes") }},
		"kubeadm's kubelets": {nodes: []corev1.Node{node("a", labelled(plane, ""))}},
	} {
		s.gitVersion = "v1.24.3"
		if info := detect(t, s); info.Hosted != nil {
			t.Errorf("%s: %+v", name, info.Hosted)
		}
	}
}

func labelledPod(pod corev1.Pod, key, value string) corev1.Pod {
	pod.Labels = map[string]string{key: value}
	return pod
}
