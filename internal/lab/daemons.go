//go:build linux

package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
)

// Paths and addresses on the node that are the same in every layout.
const (
	kubeletConfigPath    = "/var/lib/kubelet/config.yaml"
	proxyConfigPath      = "/var/lib/kube-proxy/config.conf"
	containerdConfigPath = "/etc/containerd/lab.toml"
	containerdSocket     = "/run/containerd/containerd.sock"
	etcdURL              = "http://127.0.0.1:2379"
)

type daemon struct {
	name string
	argv []string
}

// etcdPeerName is the CN in the certificates with which etcd members identify each other.
const etcdPeerName = "etcd"

// etcdDaemon returns a control-plane node's etcd. It serves only this node's API server; several
// are members of one cluster.
func etcdDaemon(binary string, n nodeConfig) daemon {
	argv := []string{binary, "--data-dir=/var/lib/etcd", "--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL}
	if len(n.members) == 0 {
		const peer = "http://127.0.0.1:2380"
		return daemon{"etcd", append(argv, "--name=lab", "--listen-peer-urls="+peer,
			"--initial-advertise-peer-urls="+peer, "--initial-cluster=lab="+peer)}
	}
	var cluster []string
	for _, m := range n.members {
		peer := "https://" + netip.AddrPortFrom(m.address, 2380).String()
		cluster = append(cluster, m.name+"="+peer)
		if m.address == n.address {
			argv = append(argv, "--name="+m.name, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer)
		}
	}
	at := in(etcdPeerDir)
	return daemon{"etcd", append(argv,
		"--initial-cluster="+strings.Join(cluster, ","), "--initial-cluster-state=new",
		at("peer-cert-file", "request.crt"), at("peer-key-file", "request.key"), at("peer-trusted-ca-file", "ca.crt"),
		"--peer-client-cert-auth", "--peer-cert-allowed-cn="+etcdPeerName,
	)}
}

func containerdDaemon() daemon {
	return daemon{"containerd", []string{"containerd", "--config", containerdConfigPath}}
}

func kubeletDaemon(l layout, n nodeConfig) daemon {
	argv := []string{
		l.kubeletBinary,
		"--config=" + kubeletConfigPath,
		"--kubeconfig=" + l.kubelet,
		"--hostname-override=" + n.name,
		"--node-ip=" + n.address.String(),
		"--v=2",
	}
	if n.rules.ContainerRuntimeFlag {
		argv = append(argv, "--container-runtime=remote", "--container-runtime-endpoint=unix://"+containerdSocket)
	}
	if n.zone != "" {
		argv = append(argv, "--node-labels="+corev1.LabelTopologyZone+"="+n.zone)
	}
	return daemon{"kubelet", argv}
}

func proxyDaemon(binary string) daemon {
	return daemon{"kube-proxy", []string{binary, "--config=" + proxyConfigPath, "--v=2"}}
}

// kubeletConfiguration renders the kubelet's configuration file
// (staging/src/k8s.io/kubelet/config/v1beta1/types.go).
func kubeletConfiguration(l layout, n nodeConfig) ([]byte, error) {
	c := map[string]any{
		"apiVersion":    "kubelet.config.k8s.io/v1beta1",
		"kind":          "KubeletConfiguration",
		"address":       "0.0.0.0",
		"staticPodPath": l.staticPods,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": l.kubeletCA},
		},
		"authorization":     map[string]any{"mode": l.kubeletAuthorization},
		"tlsCertFile":       l.kubeletServing[0],
		"tlsPrivateKeyFile": l.kubeletServing[1],
		"cgroupDriver":      "cgroupfs",
		"clusterDomain":     "cluster.local",
		"failSwapOn":        false,
		"resolvConf":        "/etc/resolv.conf",
		"volumePluginDir":   "/var/lib/kubelet/volumeplugins",
		// Detect a changed static pod soon even if its directory entry was replaced, which a watch
		// on a single file misses.
		"fileCheckFrequency": "5s",
	}
	maps.Copy(c, kubeadm.KubeletTuning())
	if !n.rules.ContainerRuntimeFlag {
		c["containerRuntimeEndpoint"] = "unix://" + containerdSocket
	}
	if n.rules.FailCgroupV1 {
		c["failCgroupV1"] = false
	}
	return asYAML("kubelet configuration", c)
}

// proxyConfiguration renders kube-proxy's configuration file. The connection tracking settings
// apply to the whole machine and are not changed.
func proxyConfiguration(l layout, n nodeConfig) ([]byte, error) {
	return asYAML("kube-proxy configuration", map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"bindAddress":        "0.0.0.0",
		"clientConnection":   map[string]any{"kubeconfig": l.proxy},
		"clusterCIDR":        podCIDR,
		"hostnameOverride":   n.name,
		"mode":               "iptables",
		"healthzBindAddress": n.address.String() + ":10256",
		"metricsBindAddress": "127.0.0.1:10249",
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s",
			"tcpCloseWaitTimeout": "0s"},
	})
}

// networkConfiguration renders the CNI configuration: pods on a bridge of the node.
func networkConfiguration(pods string) ([]byte, error) {
	data, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0",
		"name":       "lab",
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
				"ipam": map[string]any{
					"type":   "host-local",
					"ranges": []any{[]any{map[string]any{"subnet": pods}}},
					"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write CNI configuration: %w", err)
	}
	return append(data, '\n'), nil
}

// pluginsOfNetwork returns the CNI plugins that networkConfiguration needs; containerd needs
// loopback.
func pluginsOfNetwork() []string { return []string{"bridge", "host-local", "loopback", "portmap"} }

// containerdConfiguration renders a configuration that is valid for containerd 1.5 to 2. AppArmor
// is off because profiles would be loaded into the machine's kernel. The OOM score of a critical
// pod stays at the machine's default: lowering it needs a capability that root does not have
// everywhere, and would make the machine's own processes more likely to be killed than the lab's.
func containerdConfiguration(pause string) []byte {
	return fmt.Appendf(nil, containerdTemplate, containerdSocket, pause)
}

const containerdTemplate = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`
