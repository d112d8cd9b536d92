package manifest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// The ways in which a scheduler can prove who it is.
const (
	// ModeNode mounts certificate and key of the node's scheduler kubeconfig from
	// a Secret; the kubeconfig itself is a ConfigMap that refers to them by path.
	ModeNode = "node"
	// ModeNodeInline keeps the whole kubeconfig in a ConfigMap, with the private
	// key: whoever may read ConfigMaps in the namespace can then act as the
	// scheduler.
	ModeNodeInline = "node-inline"
	// ModeHostPath mounts the node's own kubeconfig. Nothing of it is copied, and
	// a renewed file is read when the container starts again. Such files belong to
	// root and nobody else may read them, so the scheduler runs as root, without
	// capabilities. Only the one file is mounted: the folder beside it holds the
	// administrator's kubeconfig and, with kubeadm, the cluster's private keys.
	ModeHostPath = "hostpath"
	// ModeServiceAccount uses the token of the ServiceAccount that the kubelet
	// mounts and renews. No key leaves a node.
	ModeServiceAccount = "serviceaccount"
)

// Modes lists the ways, the default on a master first.
func Modes() []string { return []string{ModeNode, ModeNodeInline, ModeHostPath, ModeServiceAccount} }

const (
	tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// InClusterServer is the URL of the API server for pods.
	InClusterServer = "https://kubernetes.default.svc"
)

// Credentials are how the scheduler proves who it is to the API server.
type Credentials struct {
	// Mode is one of [Modes].
	Mode string
	// User is the common name of the client certificate, the identity that is
	// given rights: system:kube-scheduler, mostly. Not used by serviceaccount.
	User string
	// Server is the URL of the API server. serviceaccount: empty means the
	// cluster's own service. hostpath: the one in the node's file, or empty where
	// that is not known.
	Server string
	// CA, Cert and Key are PEM, for node and node-inline.
	CA, Cert []byte
	Key      []byte `json:"-"`
	// HostPath is the path of the kubeconfig on the node, for hostpath.
	HostPath string
}

// String names mode, user and server; never a key.
func (c Credentials) String() string {
	return fmt.Sprintf("%s as %s at %s", c.Mode, c.User, c.Server)
}

// GoString is String, so that %#v shows no key either.
func (c Credentials) GoString() string { return c.String() }

func (c Credentials) withDefaults() Credentials {
	if c.Mode == ModeServiceAccount {
		c.Server = cmp.Or(c.Server, InClusterServer)
	}
	return c
}

func (c Credentials) validate(name string) error {
	switch c.Mode {
	case ModeNode, ModeNodeInline:
		for what, content := range map[string][]byte{"CA": c.CA, "client certificate": c.Cert, "client key": c.Key} {
			if len(bytes.TrimSpace(content)) == 0 {
				return invalid("use --credentials serviceaccount, or a node kubeconfig that holds certificates", "credentials %s of scheduler %s have no %s", c.Mode, name, what)
			}
		}
	case ModeHostPath:
		if !path.IsAbs(c.HostPath) || path.Clean(c.HostPath) != c.HostPath {
			return invalid("give the absolute path of the scheduler's kubeconfig on the node", "credentials hostpath of scheduler %s: %q is not a path on the node", name, c.HostPath)
		}
	case ModeServiceAccount:
	default:
		return invalid("use one of "+strings.Join(Modes(), ", "), "credentials %q of scheduler %s are not known", c.Mode, name)
	}
	if c.Mode != ModeServiceAccount && c.User == "" {
		return invalid("use --credentials serviceaccount", "credentials %s of scheduler %s name no user: whom to give rights is not known", c.Mode, name)
	}
	if c.Mode != ModeHostPath || c.Server != "" {
		return c.validateServer(name)
	}
	return nil
}

func (c Credentials) validateServer(name string) error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return invalid("give the API server as https://host:port", "credentials %s of scheduler %s: %q is not the URL of an API server", c.Mode, name, c.Server)
	}
	return nil
}

// Warnings say what the credentials expose, for the person who deploys.
func (c Credentials) Warnings() []string {
	switch c.Mode {
	case ModeNodeInline:
		return []string{"credentials node-inline keep the private key of " + c.User + " in a ConfigMap: whoever may read ConfigMaps in the namespace can act as it; credentials node keep it in a Secret"}
	case ModeHostPath:
		return []string{"credentials hostpath make the scheduler run as root, without capabilities: " + c.HostPath + " is root's own file; credentials node run it as an ordinary user"}
	}
	return nil
}

// hostNetwork says whether the API server can only be reached from the node
// itself: it is on loopback, or has a name that the node may know from its own
// hosts file, or none that is known here. An address, or a service of the
// cluster, can be reached from the pod network.
func (c Credentials) hostNetwork() bool {
	u, err := url.Parse(c.Server)
	if err != nil || c.Server == "" {
		return true
	}
	host := u.Hostname()
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback()
	}
	return !strings.HasSuffix(host, ".svc") && !strings.Contains(host, ".svc.")
}

// root says whether the process has to be root to read its credentials.
func (c Credentials) root() bool { return c.Mode == ModeHostPath }

// kubeconfig is the file's content, nil where the node's own is mounted.
func (c Credentials) kubeconfig() []byte {
	user, trust := c.User, "certificate-authority: "+credentialsDir+"/ca.crt"
	var proof []string
	switch c.Mode {
	case ModeHostPath:
		return nil
	case ModeNode:
		proof = []string{"client-certificate: " + credentialsDir + "/tls.crt", "client-key: " + credentialsDir + "/tls.key"}
	case ModeNodeInline:
		trust = "certificate-authority-data: " + base64.StdEncoding.EncodeToString(c.CA)
		proof = []string{
			"client-certificate-data: " + base64.StdEncoding.EncodeToString(c.Cert),
			"client-key-data: " + base64.StdEncoding.EncodeToString(c.Key),
		}
	case ModeServiceAccount:
		user, trust = "serviceaccount", "certificate-authority: "+tokenDir+"/ca.crt"
		proof = []string{"tokenFile: " + tokenDir + "/token"}
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: %q
    %s
users:
- name: %q
  user:
    %s
contexts:
- name: scheduler
  context:
    cluster: local
    user: %q
current-context: scheduler
`, c.Server, trust, user, strings.Join(proof, "\n    "), user)
}
