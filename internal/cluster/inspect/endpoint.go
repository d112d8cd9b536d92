package inspect

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// kube-apiserver's defaults (cmd/kube-apiserver/app/options, pkg/kubeapiserver/options).
const (
	defaultAPIPort     = 6443
	defaultBindAddress = "0.0.0.0"
)

// addAPIServer records a control-plane node's API server.
func (d *detector) addAPIServer(node string, container *corev1.Container) {
	i := slices.IndexFunc(d.info.ControlPlane.Nodes, func(n ControlPlaneNode) bool { return n.Name == node })
	if i < 0 {
		return
	}
	flags := flagsOf(container)
	server := &APIServer{
		Port: cmp.Or(flagPort("secure-port", flags["secure-port"]),
			defaultAPIPort), BindAddress: cmp.Or(flags["bind-address"], defaultBindAddress),
		AdvertiseAddress: flags["advertise-address"],
	}
	found := &d.info.ControlPlane.Nodes[i]
	found.APIServer = server
	if server.AdvertiseAddress != "" {
		found.Names = append(found.Names, server.AdvertiseAddress)
	}
}

// endpoint reads the address for all API servers, if kubeadm was given one
// (cmd/kubeadm/app/constants, KubeadmConfigConfigMap).
func (d *detector) endpoint(ctx context.Context) {
	layout, _ := LayoutNamed(d.info.Layout)
	if layout.APIServerName == "" || d.info.ControlPlane.Count < 2 {
		return
	}
	found, err := d.core.ConfigMaps(kubeSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return // made without kubeadm
	}
	if err != nil {
		d.warnUnread(err, "get ConfigMap kube-system/kubeadm-config", "the address of all API servers is unknown")
		return
	}
	var configuration struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	}
	if err := yaml.Unmarshal([]byte(found.Data["ClusterConfiguration"]), &configuration); err != nil {
		d.warn("read ConfigMap kube-system/kubeadm-config: %v: the address of all API servers is unknown", err)
		return
	}
	d.info.ControlPlane.Endpoint = withPort(configuration.ControlPlaneEndpoint)
}

// withPort adds the default port to an address without one.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); address == "" || err == nil {
		return address
	}
	address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	return net.JoinHostPort(address, strconv.Itoa(defaultAPIPort))
}

// dependsOn returns the control-plane node whose API server a scheduler's kubeconfig names, if
// there are several control-plane nodes. The kubeconfig is in a ConfigMap for all the scheduler's
// replicas.
func (d *detector) dependsOn(ctx context.Context, deployment *appsv1.Deployment) (node string, err error) {
	if d.info.ControlPlane.Count < 2 {
		return "", nil
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		found, err := d.core.ConfigMaps(deployment.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return "", kubeapi.Explain("read "+kubeapi.ObjectName("ConfigMap", deployment.Namespace, volume.ConfigMap.Name), err)
		}
		for _, text := range found.Data {
			for _, host := range serversOf(text) {
				if node, ok := d.info.ControlPlane.NodeAt(host); ok {
					return node, nil
				}
			}
		}
	}
	return "", nil
}

// serversOf returns the API servers' hosts in a kubeconfig. Another text has none.
func serversOf(text string) []string {
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil
	}
	var hosts []string
	for _, cluster := range config.Clusters {
		if server, err := url.Parse(cluster.Server); err == nil {
			hosts = append(hosts, server.Hostname())
		}
	}
	return hosts
}

// Labelled returns the control-plane nodes that have the label LabelKey.
func (p ControlPlane) Labelled() []ControlPlaneNode {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(node ControlPlaneNode) bool { return node.Unlabelled })
}

// NodeAt returns the name of the control-plane node that has a name or an address. An address that
// several nodes share, such as a virtual one that all API servers advertise, matches no node.
func (p ControlPlane) NodeAt(host string) (name string, found bool) {
	for _, node := range p.Nodes {
		if host == "" || host != node.Address && !slices.Contains(node.Names, host) {
			continue
		}
		if found {
			return "", false
		}
		name, found = node.Name, true
	}
	return name, found
}
