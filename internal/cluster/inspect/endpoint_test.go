package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// threeOfKubeadm is a cluster of kubeadm with three control-plane nodes.
func threeOfKubeadm(flags ...string) *apiServer {
	s := &apiServer{gitVersion: "v1.24.3"}
	for i := range 3 {
		name, address := fmt.Sprintf("cp-%d", i+1), fmt.Sprintf("10.0.0.%d", i+1)
		s.nodes = append(s.nodes, node(name, labelled("node-role.kubernetes.io/control-plane", ""), func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		}))
		command := append([]string{"kube-apiserver", "--advertise-address=192.0.2." + fmt.Sprint(i+1)}, flags...)
		s.pods = append(s.pods,
			staticPod("kube-apiserver", name, container("kube-apiserver", "localhost/kube-apiserver:v1.24.3", command...)),
			staticPod("kube-scheduler", name, container("kube-scheduler", "localhost/kube-scheduler:v1.24.3", "kube-scheduler")))
	}
	return s
}

func TestDetectAPIServersOfNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		flags    []string
		port     int
		bind     string
		loopback bool
	}{
		"defaults":       {nil, 6443, "0.0.0.0", true},
		"other port":     {[]string{"--secure-port=443"}, 443, "0.0.0.0", true},
		"two words":      {[]string{"--secure-port", "443", "--bind-address", "::"}, 443, "::", true},
		"one address":    {[]string{"--bind-address=10.0.0.1"}, 6443, "10.0.0.1", false},
		"loopback":       {[]string{"--bind-address=127.0.0.1"}, 6443, "127.0.0.1", true},
		"not an address": {[]string{"--bind-address=here", "--secure-port=x"}, 6443, "here", false},
	} {
		t.Run(name, func(t *testing.T) {
			for i, node := range detect(t, threeOfKubeadm(tc.flags...)).ControlPlane.Nodes {
				advertised := fmt.Sprintf("192.0.2.%d", i+1)
				if diff := cmp.Diff(&APIServer{Port: tc.port, BindAddress: tc.bind, AdvertiseAddress: advertised},
					node.APIServer); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", node.Name, diff)
				}
				if diff := cmp.Diff([]string{node.Name, node.Address, advertised}, node.Names); diff != "" {
					t.Errorf("names (-want +got):\n%s", diff)
				}
				if node.APIServer.ServesLoopback() != tc.loopback {
					t.Errorf("serves loopback: want %v", tc.loopback)
				}
			}
		})
	}
}

// An address that all API servers advertise, such as a virtual one, matches no node.
func TestNodeAtAnAddressOfSeveral(t *testing.T) {
	p := ControlPlane{Nodes: []ControlPlaneNode{
		{Name: "a", Address: "10.0.0.1", Names: []string{"a", "10.0.0.1", "192.0.2.100"}},
		{Name: "b", Address: "10.0.0.2", Names: []string{"b", "10.0.0.2", "192.0.2.100"}},
	}}
	for host, want := range map[string]string{"10.0.0.2": "b", "a": "a", "192.0.2.100": "", "localhost": "", "": ""} {
		if got, found := p.NodeAt(host); got != want || found != (want != "") {
			t.Errorf("%q: %q, %v", host, got, found)
		}
	}
}

func TestDetectEndpointOfKubeadm(t *testing.T) {
	for name, tc := range map[string]struct{ configuration, want, warning string }{
		"with a port":          {"controlPlaneEndpoint: api.example.com:8443\n", "api.example.com:8443", ""},
		"without a port":       {"controlPlaneEndpoint: api.example.com\n", "api.example.com:6443", ""},
		"IPv6":                 {"controlPlaneEndpoint: '[2001:db8::1]'\n", "[2001:db8::1]:6443", ""},
		"IPv6 with a port":     {"controlPlaneEndpoint: '[2001:db8::1]:443'\n", "[2001:db8::1]:443", ""},
		"none":                 {"clusterName: kubernetes\n", "", ""},
		"no YAML":              {"controlPlaneEndpoint: [", "", "read ConfigMap kube-system/kubeadm-config"},
		"made without kubeadm": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeOfKubeadm()
			if tc.configuration != "" {
				s.configMaps = map[string]map[string]string{
					"kube-system/kubeadm-config": {"ClusterConfiguration": tc.configuration}}
			}
			info := detect(t, s)
			if got := info.ControlPlane.Endpoint; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.warning == "" {
				wants(t, info)
			} else {
				wants(t, info, tc.warning)
			}
		})
	}
	forbidden := threeOfKubeadm()
	forbidden.forbid = func(path string) bool { return strings.Contains(path, "/configmaps/") }
	wants(t, detect(t, forbidden), "the address of all API servers is unknown")
	single := threeOfKubeadm()
	single.nodes = single.nodes[:1]
	single.configMaps = map[string]map[string]string{
		"kube-system/kubeadm-config": {"ClusterConfiguration": "controlPlaneEndpoint: api.example.com\n"}}
	if got := detect(t, single).ControlPlane.Endpoint; got != "" {
		t.Errorf("a single node has endpoint %q", got)
	}
}

// A scheduler that was deployed before the other control-plane nodes were added, or by an earlier
// version, depends on one of them.
func TestDetectWarnsOfSchedulersThatDependOnOneNode(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.0.0.2:6443":        "cp-2",
		"https://cp-3:6443":            "cp-3",
		"https://192.0.2.1":            "cp-1",
		"https://127.0.0.1:6443":       "",
		"https://api.example.com:6443": "",
	} {
		s := threeOfKubeadm()
		s.deployments = []appsv1.Deployment{mounting("", "copy")}
		s.configMaps = map[string]map[string]string{
			"gpu/copy": {"kubeconfig": `{kind: Config, apiVersion: v1, clusters: [{name: c, cluster: {server: "` + server +
				`"}}]}`}}
		info := detect(t, s)
		if got := info.Scheduler.Deployed[0].DependsOn; got != want {
			t.Errorf("%s: got %q, want %q", server, got, want)
		}
		if want == "" {
			wants(t, info)
		} else {
			wants(t, info, "all replicas of scheduler s in namespace gpu use the API server of node "+want)
		}
	}
}
