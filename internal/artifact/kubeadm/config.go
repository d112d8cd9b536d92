// Package kubeadm renders kubeadm's input for a lab: configuration in a release's API, and command
// lines; and lists the images of a release.
package kubeadm

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Port is every API server's port.
const Port = 6443

// Cluster is the configuration that all nodes of a cluster share.
type Cluster struct {
	Release versions.Release
	// Endpoint is the load balancer's host and port in front of the API servers. It is empty if the
	// cluster has one control-plane node and no load balancer.
	Endpoint string
	// Services is the network of the Services.
	Services string
	// Socket is the path of the container runtime's socket.
	Socket string
	// Token is the bootstrap token with which nodes join. CertificateKey encrypts the certificates
	// that control-plane nodes share; it is empty if there is only one.
	Token, CertificateKey string
}

// Node is a node for which kubeadm runs.
type Node struct {
	// Name is the Node object's name. It must be the host name.
	Name         string
	Address      netip.Addr
	ControlPlane bool
}

// Discovery is the information with which a joining node finds and trusts the cluster.
type Discovery struct {
	// Server is the host and port of an API server or the load balancer.
	Server string
	// CAHash is the hash of the cluster's CA, "sha256:…".
	CAHash string
}

type object = map[string]any

// Init renders the configuration for "kubeadm init" on the first node.
func (c Cluster) Init(n Node) ([]byte, error) {
	init := object{
		"apiVersion":       c.Release.Rules().KubeadmAPI,
		"kind":             "InitConfiguration",
		"bootstrapTokens":  []any{object{"token": c.Token}},
		"localAPIEndpoint": localEndpoint(n),
		"nodeRegistration": c.registration(n),
	}
	if c.CertificateKey != "" {
		init["certificateKey"] = c.CertificateKey
	}
	cluster := object{
		"apiVersion":        c.Release.Rules().KubeadmAPI,
		"kind":              "ClusterConfiguration",
		"kubernetesVersion": c.Release.String(),
		"networking":        object{"serviceSubnet": c.Services},
		"apiServer":         c.apiServer(),
	}
	if c.Endpoint != "" {
		cluster["controlPlaneEndpoint"] = c.Endpoint
	}
	return documents(init, cluster, c.kubelet())
}

// Join renders the configuration for "kubeadm join" on another node.
func (c Cluster) Join(n Node, d Discovery) ([]byte, error) {
	join := object{
		"apiVersion": c.Release.Rules().KubeadmAPI,
		"kind":       "JoinConfiguration",
		"discovery": object{"bootstrapToken": object{
			"token": c.Token, "apiServerEndpoint": d.Server, "caCertHashes": []any{d.CAHash},
		}},
		"nodeRegistration": c.registration(n),
	}
	if n.ControlPlane {
		join["controlPlane"] = object{"localAPIEndpoint": localEndpoint(n), "certificateKey": c.CertificateKey}
	}
	return documents(join)
}

func localEndpoint(n Node) object {
	return object{"advertiseAddress": n.Address.String(), "bindPort": Port}
}

func (c Cluster) registration(n Node) object {
	args := c.extraArgs(map[string]string{"node-ip": n.Address.String()})
	return object{"name": n.Name, "criSocket": "unix://" + c.Socket, "kubeletExtraArgs": args}
}

// extraArgs returns a component's arguments, which are a list in v1beta4.
func (c Cluster) extraArgs(args map[string]string) any {
	if c.Release.Rules().KubeadmAPI != "kubeadm.k8s.io/v1beta4" {
		return args
	}
	var list []any
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, object{"name": name, "value": args[name]})
	}
	return list
}

// kubelet is every kubelet's configuration. kubeadm sets the other fields.
func (c Cluster) kubelet() object {
	k := object{
		"apiVersion":      "kubelet.config.k8s.io/v1beta1",
		"kind":            "KubeletConfiguration",
		"cgroupDriver":    "cgroupfs",
		"failSwapOn":      false,
		"resolvConf":      "/etc/resolv.conf",
		"volumePluginDir": "/var/lib/kubelet/volumeplugins",
	}
	for key, value := range KubeletTuning() {
		k[key] = value
	}
	if c.Release.Rules().FailCgroupV1 {
		k["failCgroupV1"] = false
	}
	return k
}

// KubeletTuning returns fields of a KubeletConfiguration that make a lab start sooner and ignore
// how full the machine's disk is.
func KubeletTuning() map[string]any {
	return map[string]any{
		// Create the mirror pod for a static pod that started before the API server in the next round
		// instead of a minute later.
		"syncFrequency": "2s",
		// Report a node that has become ready at its next status check.
		"nodeStatusUpdateFrequency": "1s",
		"nodeStatusReportFrequency": "10s",
		"evictionHard": object{"memory.available": "0%", "nodefs.available": "0%",
			"nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
}

func documents(objects ...object) ([]byte, error) {
	var b bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", o["kind"], err)
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}
