package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func annotated(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations = map[string]string{key: "x"} }
}

func runsOS(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.OSImage = name }
}

// inNamespace moves a pod to another namespace.
func inNamespace(pod corev1.Pod, namespace string) corev1.Pod {
	pod.Namespace = namespace
	return pod
}

// withDirectory mounts a directory of the node at the same path.
func withDirectory(pod corev1.Pod, directory string) corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: directory,
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: directory}}})
	mounts := &pod.Spec.Containers[0].VolumeMounts
	*mounts = append(*mounts, corev1.VolumeMount{Name: directory, MountPath: directory})
	return pod
}

// schedulerOn is the static pod kube-scheduler on a node, with the flags of its command.
func schedulerOn(node string, command ...string) corev1.Pod {
	return staticPod("kube-scheduler", node, container("kube-scheduler", "localhost/kube-scheduler", command...))
}

// The labels, annotations, versions and pods of each kind are those in public reports.
func TestDetectIdentifiesKindsByTheirNodesAndPods(t *testing.T) {
	const (
		plane  = "node-role.kubernetes.io/control-plane"
		master = "node-role.kubernetes.io/master"
		rke    = "node-role.kubernetes.io/controlplane"
		conf   = "--kubeconfig=/etc/kubernetes/scheduler.conf"
	)
	for name, tc := range map[string]struct {
		version              string
		nodes                []corev1.Node
		pods                 []corev1.Pod
		kind, layout, runs   string
		label                string
		controlPlane, hosted int
	}{
		"EKS Anywhere": {version: "v1.25.5-eks-c248520", kind: "kubeadm", layout: "kubeadm", runs: RunsAsStaticPod,
			label: plane, controlPlane: 1,
			nodes: []corev1.Node{node("cp", labelled(plane, ""), annotated("cluster.x-k8s.io/cluster-name")), node("w")},
			pods:  []corev1.Pod{schedulerOn("cp", "kube-scheduler", conf)}},
		"GKE on-prem": {version: "v1.27.4-gke.1600", kind: "kubeadm", layout: "kubeadm", runs: RunsAsStaticPod,
			label: plane, controlPlane: 1, nodes: []corev1.Node{node("cp", labelled(plane, ""))},
			pods: []corev1.Pod{schedulerOn("cp", "kube-scheduler", conf)}},
		"a provider's suffix on nodes of kubeadm": {version: "v1.30.1-aliyun.1", kind: "kubeadm", layout: "kubeadm",
			runs: RunsAsStaticPod, label: master, controlPlane: 1, nodes: []corev1.Node{node("cp", labelled(master, ""))},
			pods: []corev1.Pod{schedulerOn("cp", "kube-scheduler", conf)}},
		"EKS": {version: "v1.29.3-eks-036c24b", kind: "eks", layout: LayoutManaged, runs: RunsManaged, hosted: 1,
			nodes: []corev1.Node{node("w")}},
		"aks-engine": {version: "v1.22.7", kind: "aks-engine", layout: "aks-engine", runs: RunsAsStaticPod, label: master,
			controlPlane: 1, nodes: []corev1.Node{
				node("k8s-master-1-0", labelled(master, ""), labelled("kubernetes.azure.com/role", "master")), node("w")},
			pods: []corev1.Pod{withDirectory(schedulerOn("k8s-master-1-0", "kube-scheduler", "--kubeconfig=/var/lib/kubelet/kubeconfig"),
				"/etc/kubernetes")}},
		"Cluster API on Azure": {version: "v1.30.2", kind: "kubeadm", layout: "kubeadm", runs: RunsAsStaticPod, label: plane,
			controlPlane: 1,
			nodes:        []corev1.Node{node("cp", labelled(plane, ""), labelled("kubernetes.azure.com/managed", "false"))},
			pods:         []corev1.Pod{schedulerOn("cp", "kube-scheduler", conf)}},
		"AKS with virtual nodes first": {version: "v1.29.2", kind: "aks", layout: LayoutManaged, runs: RunsManaged, hosted: 1,
			nodes: append(manyNodes("aci", 60), node("aks-1", labelled("kubernetes.azure.com/cluster", "x")))},
		"RKE1": {version: "v1.24.10", kind: "rke1", layout: "rke1", runs: RunsInContainer, label: rke, controlPlane: 1,
			nodes: []corev1.Node{node("cp", labelled(rke, "true"), tainted(rke, "true"), annotated("rke.cattle.io/internal-ip")),
				node("w", annotated("rke.cattle.io/internal-ip"))}},
		"RKE1 without annotations": {version: "v1.20.9", kind: "rke1", layout: "rke1", runs: RunsInContainer, label: rke,
			controlPlane: 1, nodes: []corev1.Node{node("cp", labelled(rke, "true")), node("w")}},
		"RKE2 made by Rancher": {version: "v1.28.9+rke2r1", kind: "rke2", layout: "rke2", runs: RunsAsStaticPod,
			label: plane, controlPlane: 1,
			nodes: []corev1.Node{node("cp", labelled(plane, "true"), labelled("rke.cattle.io/machine", "x"))},
			pods: []corev1.Pod{schedulerOn("cp", "kube-scheduler",
				"--kubeconfig=/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig")}},
		"OpenShift": {version: "v1.27.6+f67aeb3", kind: "openshift", layout: "openshift", runs: RunsAsStaticPod,
			label: plane, controlPlane: 1, nodes: []corev1.Node{
				node("m1", labelled(plane, ""), labelled(master, ""), labelled("node.openshift.io/os_id", "rhcos"))},
			pods: []corev1.Pod{inNamespace(staticPod("openshift-kube-scheduler", "m1",
				container("kube-scheduler", "x", "hyperkube", "kube-scheduler")), "openshift-kube-scheduler")}},
		"MicroShift": {version: "v1.29.4", kind: "openshift", layout: LayoutUnknown, runs: RunsUnknown, label: plane,
			controlPlane: 1, nodes: []corev1.Node{node("m", labelled(plane, ""), labelled("node.openshift.io/os_id", "rhel"))}},
		"Talos": {version: "v1.30.1", kind: "talos", layout: "talos", runs: RunsAsStaticPod, label: plane, controlPlane: 1,
			nodes: []corev1.Node{node("t1", labelled(plane, ""), annotated("talos.dev/owned-labels"))},
			pods: []corev1.Pod{schedulerOn("t1", "/usr/local/bin/kube-scheduler",
				"--config=/system/config/kubernetes/kube-scheduler/scheduler-config.yaml")}},
		"Talos by its operating system": {version: "v1.24.3", kind: "talos", layout: "talos", runs: RunsAsStaticPod,
			label: master, controlPlane: 1, nodes: []corev1.Node{node("t1", labelled(master, ""), runsOS("Talos (v1.1.0)"))},
			pods: []corev1.Pod{schedulerOn("t1", "kube-scheduler")}},
		"kOps": {version: "v1.28.6", kind: "kops", layout: "kops", runs: RunsAsStaticPod, label: plane, controlPlane: 1,
			nodes: []corev1.Node{node("k1", labelled(plane, ""), labelled("kops.k8s.io/instancegroup", "x"))},
			pods: []corev1.Pod{schedulerOn("k1", "/go-runner", "/usr/local/bin/kube-scheduler",
				"--authentication-kubeconfig=/var/lib/kube-scheduler/kubeconfig")}},
		"kOps by the kubeconfig that it mounts": {version: "v1.20.6", kind: "kops", layout: "kops", runs: RunsAsStaticPod,
			label: master, controlPlane: 1, nodes: []corev1.Node{node("k1", labelled(master, ""))},
			pods: []corev1.Pod{withDirectory(schedulerOn("k1", "/usr/local/bin/kube-scheduler"), "/var/lib/kube-scheduler")}},
		"another tool's static pod": {version: "v1.28.6", kind: DistributionUnknown, layout: LayoutUnknown,
			runs: RunsAsStaticPod, label: plane, controlPlane: 1, nodes: []corev1.Node{node("x1", labelled(plane, ""))},
			pods: []corev1.Pod{schedulerOn("x1", "kube-scheduler", "--kubeconfig=/opt/x/scheduler.yaml")}},
		"kubeadm without labels": {version: "v1.24.3", kind: "kubeadm", layout: "kubeadm", runs: RunsAsStaticPod,
			controlPlane: 2, nodes: []corev1.Node{node("a"), node("b"), node("w")},
			pods: []corev1.Pod{schedulerOn("a", "kube-scheduler", conf), schedulerOn("b", "kube-scheduler", conf)}},
	} {
		t.Run(name, func(t *testing.T) {
			info := detect(t, &apiServer{gitVersion: tc.version, nodes: tc.nodes, pods: tc.pods})
			got := []any{info.Distribution, info.Layout, info.Scheduler.Runs, info.ControlPlane.LabelKey,
				info.ControlPlane.Count, info.Hosted != nil}
			want := []any{tc.kind, tc.layout, tc.runs, tc.label, tc.controlPlane, tc.hosted > 0}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(info.Scheduler.Pods) != len(tc.pods) {
				t.Errorf("default schedulers: %+v", info.Scheduler.Pods)
			}
		})
	}
}

func manyNodes(prefix string, n int) []corev1.Node {
	var nodes []corev1.Node
	for i := range n {
		nodes = append(nodes, node(prefix+"-"+string(rune('a'+i/26))+string(rune('a'+i%26))))
	}
	return nodes
}

func TestDetectFindsTheControlPlaneNodeWithoutTheLabelOfTheOthers(t *testing.T) {
	const plane, conf = "node-role.kubernetes.io/control-plane", "--kubeconfig=/etc/kubernetes/scheduler.conf"
	info := detect(t, &apiServer{gitVersion: "v1.24.3",
		nodes: []corev1.Node{node("a", labelled(plane, "")), node("b"), node("b-a", labelled(plane, "")), node("w")},
		pods: []corev1.Pod{schedulerOn("a", "kube-scheduler", conf), schedulerOn("b", "kube-scheduler", conf),
			schedulerOn("b-a", "kube-scheduler", conf)}})
	var names []string
	for _, n := range info.ControlPlane.Nodes {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "b-a"}, names); diff != "" {
		t.Errorf("control-plane nodes (-want +got):\n%s", diff)
	}
	if labelled := info.ControlPlane.Labelled(); len(labelled) != 2 || labelled[1].Name != "b-a" {
		t.Errorf("with the label: %+v", labelled)
	}
	wants(t, info, "control-plane node b does not have the label "+plane)
}

func TestDetectDoesNotReadAllNodesOfAnUnknownHostedControlPlane(t *testing.T) {
	s := &apiServer{gitVersion: "v1.24.3", nodes: manyNodes("n", 620)}
	info := detect(t, s)
	if info.Distribution != DistributionHosted || s.wholeNodes != maxWorkers {
		t.Errorf("got %s, %d whole nodes", info.Distribution, s.wholeNodes)
	}
	if unknown := strings.Join(info.Hosted.Unknown, "; "); !strings.Contains(unknown, "of 120 of the 620 nodes") {
		t.Errorf("unknown: %s", unknown)
	}
}

func TestDetectWithoutPermissionToListNodesDoesNotTakeASuffixForAProvider(t *testing.T) {
	info := detect(t, &apiServer{gitVersion: "v1.25.5-eks-c248520", nodes: []corev1.Node{node("a")},
		forbid: func(path string) bool { return strings.HasSuffix(path, "/nodes") }})
	if info.Layout != LayoutUnknown || info.Hosted != nil {
		t.Errorf("got %s, layout %s", info.Distribution, info.Layout)
	}
}

func TestOpenShiftAssignsUsersExceptInItsOwnNamespaces(t *testing.T) {
	for _, tc := range []struct {
		distribution, namespace string
		want                    bool
	}{
		{"openshift", "gpu", true}, {"hypershift", "gpu", true}, {"openshift", "kube-system", false},
		{"openshift", "openshift-kube-scheduler", false}, {"openshift", "default", false}, {"kubeadm", "gpu", false},
	} {
		if got := (&Info{Distribution: tc.distribution}).AssignsUser(tc.namespace); got != tc.want {
			t.Errorf("%s, namespace %s: %t", tc.distribution, tc.namespace, got)
		}
	}
}

func at(address string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Addresses[1].Address = address }
}

// kubeasz and other tools start the control plane as services of its machines, and set other
// labels.
func TestDetectFindsControlPlaneNodesByTheAddressesOfTheAPIServers(t *testing.T) {
	nodes := []corev1.Node{node("m1", at("10.0.0.11"), labelled("kubernetes.io/role", "master")), node("m2", at("10.0.0.12")),
		node("w1", at("10.0.0.13"))}
	for name, tc := range map[string]struct {
		version      string
		servers      []string
		controlPlane int
		hosted       bool
		unknown      string
	}{
		"on two nodes":        {"v1.24.3", []string{"10.0.0.11", "10.0.0.12"}, 2, false, ""},
		"on two nodes, 1.20":  {"v1.20.15", []string{"10.0.0.11", "10.0.0.12"}, 2, false, ""},
		"on no node":          {"v1.24.3", []string{"192.0.2.1"}, 0, true, ""},
		"unknown":             {"v1.24.3", nil, 0, true, "whether the control plane is outside of the cluster"},
		"a provider says it":  {"v1.24.3-eks-036c24b", []string{"10.0.0.11"}, 0, true, ""},
		"an agentless server": {"v1.24.3+k0s", nil, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			info := detect(t, &apiServer{gitVersion: tc.version, nodes: nodes, servers: tc.servers})
			if info.ControlPlane.Count != tc.controlPlane || (info.Hosted != nil) != tc.hosted {
				t.Fatalf("got %+v, hosted %+v", info.ControlPlane, info.Hosted)
			}
			if tc.hosted {
				if text := strings.Join(info.Hosted.Unknown, "; "); !strings.Contains(text, tc.unknown) ||
					tc.unknown == "" && strings.Contains(text, "whether the control plane is outside") {
					t.Errorf("unknown: %s", text)
				}
				return
			}
			wants(t, info, "microk8s-controlplane: m1, m2")
			if info.Layout != LayoutUnknown || info.ControlPlane.LabelKey != "" {
				t.Errorf("layout %s, label %s", info.Layout, info.ControlPlane.LabelKey)
			}
		})
	}
}
