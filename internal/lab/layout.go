//go:build linux

package lab

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// layout describes where a distribution keeps a control-plane node's files.
type layout struct {
	name string
	// port is the API server's port.
	port int
	// Paths on the node.
	admin, proxy string // kubeconfigs
	staticPods   string // file or directory
	// nodeName returns the name of the Node object for the node's host name and address.
	nodeName func(hostName, address string) string

	// The rest is set for a layout in which the lab itself writes the files and configures the kubelet
	// and the Node object.

	kubelet        string // kubeconfig
	kubeletCA      string
	kubeletServing [2]string // certificate, key
	kubeletBinary  string
	// kubeletAuthorization is AlwaysAllow or Webhook.
	kubeletAuthorization string
	// labels and taints of the Node object.
	labels map[string]string
	taints []corev1.Taint
	// controlPlane are the names of the static pods, without the node suffix.
	controlPlane []string
	// identities returns the files with keys and certificates, which do not change during the
	// cluster's life.
	identities func(nodeConfig) ([]file, error)
	// settings returns the layout's files that depend on the release. It does not return the files
	// that all layouts share.
	settings func(nodeConfig) ([]file, error)
}

func layouts() []layout { return []layout{pmkLayout(), kubeadmLayout(), hostedLayout()} }

// findLayout returns the layout with the name; the default is LayoutPMK.
func findLayout(name string) (layout, error) {
	if name == "" {
		name = LayoutPMK
	}
	var names []string
	for _, l := range layouts() {
		if l.name == name {
			return l, nil
		}
		names = append(names, l.name)
	}
	return layout{}, problem.Invalidf("use one of: "+strings.Join(names, ", "), "unknown layout %q", name)
}

// allFiles returns every node file, in writing order.
func (l layout) allFiles(n nodeConfig) ([]file, error) {
	files, err := l.identities(n)
	if err != nil {
		return nil, err
	}
	settings, err := l.settings(n)
	if err != nil {
		return nil, err
	}
	shared, err := l.sharedSettings(n)
	if err != nil {
		return nil, err
	}
	return slices.Concat(files, settings, shared), nil
}

// sharedSettings returns every layout's files, without keys.
func (l layout) sharedSettings(n nodeConfig) ([]file, error) {
	kubelet, err := kubeletConfiguration(l, n)
	if err != nil {
		return nil, err
	}
	proxy, err := proxyConfiguration(l, n)
	if err != nil {
		return nil, err
	}
	network, err := networkConfiguration(n.pods.String())
	if err != nil {
		return nil, err
	}
	return []file{
		{kubeletConfigPath, 0o644, kubelet},
		{proxyConfigPath, 0o644, proxy},
		{"/etc/cni/net.d/10-lab.conflist", 0o644, network},
		{containerdConfigPath, 0o644, containerdConfiguration(PauseImage)},
	}, nil
}

func kubeconfigs(byPath []kubeconfigAt) ([]file, error) {
	var files []file
	for _, k := range byPath {
		data, err := kubeconfig(k.access)
		if err != nil {
			return nil, err
		}
		files = append(files, file{k.path, 0o600, data})
	}
	return files, nil
}

type kubeconfigAt struct {
	path   string
	access access
}

func keyFiles(dir string, pairs map[string]certificates.Pair) []file {
	var files []file
	for _, name := range sortedKeys(pairs) {
		files = append(files,
			file{dir + "/" + name + ".crt", 0o644, pairs[name].Cert},
			file{dir + "/" + name + ".key", 0o600, pairs[name].Key})
	}
	return files
}

func asYAML(what string, v any) ([]byte, error) {
	data, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", what, err)
	}
	return data, nil
}
