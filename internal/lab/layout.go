//go:build linux

package lab

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/certificates"
	"github.com/pmk-sched/pmk-sched/versions"
)

// layout is where a distribution keeps the files of a master and what it tells
// the kubelet and the Node object.
type layout struct {
	name string
	// port of the API server.
	port int
	// Paths on the master.
	admin, kubelet, proxy string // kubeconfigs
	staticPods            string // file or folder
	kubeletCA             string
	kubeletServing        [2]string // certificate, key
	kubeletBinary         string    // "" for one that is found in PATH
	// kubeletAuthorization is AlwaysAllow or Webhook.
	kubeletAuthorization string
	// nodeName names the Node object from the lab's name and address.
	nodeName func(lab, address string) string
	// server is the API server's URL in the node's own kubeconfigs.
	server func(address string) string
	// labels and taints of the Node object.
	labels func(versions.Rules) map[string]string
	taints func(versions.Rules) []corev1.Taint
	// controlPlane names the static pods, without the suffix of the node.
	controlPlane []string
	// identities makes the files with keys and certificates: they stay as they
	// are for as long as the cluster lives.
	identities func(node) ([]file, error)
	// settings makes the files that follow from the release, those that every
	// layout shares left out.
	settings func(node) ([]file, error)
}

func layouts() []layout { return []layout{pmkLayout(), kubeadmLayout()} }

// findLayout returns the layout of that name; "" means LayoutPMK.
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
	return layout{}, invalid("use one of: "+strings.Join(names, ", "), "a lab cannot have the layout %q", name)
}

// allFiles makes every file of the node, in the order of writing.
func (l layout) allFiles(n node) ([]file, error) {
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

// sharedSettings makes the files that every layout has, the keys left out.
func (l layout) sharedSettings(n node) ([]file, error) {
	kubelet, err := kubeletConfiguration(l, n)
	if err != nil {
		return nil, err
	}
	proxy, err := proxyConfiguration(l, n)
	if err != nil {
		return nil, err
	}
	network, err := networkConfiguration()
	if err != nil {
		return nil, err
	}
	return []file{
		{kubeletConfigPath, 0o644, kubelet},
		{proxyConfigPath, 0o644, proxy},
		{"/etc/cni/net.d/10-lab.conflist", 0o644, network},
		{containerdConfigPath, 0o644, []byte(containerdConfiguration)},
	}, nil
}

// kubeconfigs renders the node's own kubeconfigs by path.
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
