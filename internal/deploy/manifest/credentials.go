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

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Credentials modes.
const (
	// ModeNode mounts the certificate and key in the node's scheduler kubeconfig from a Secret; the
	// kubeconfig is a ConfigMap that refers to them by path.
	ModeNode = "node"
	// ModeNodeInline keeps the whole kubeconfig in a ConfigMap, including the private key: everyone
	// with read access to ConfigMaps in the namespace can act as the scheduler.
	ModeNodeInline = "node-inline"
	// ModeHostPath mounts the node's own kubeconfig. Nothing is copied, and a renewed file takes
	// effect when the container restarts. Only root can read such files, so the scheduler runs as
	// root, without capabilities. Only the file is mounted: its directory also holds the
	// administrator's kubeconfig and, with kubeadm, the cluster's private keys.
	ModeHostPath = "hostpath"
	// ModeServiceAccount uses the ServiceAccount token that the kubelet mounts and renews. No key
	// leaves a node.
	ModeServiceAccount = "serviceaccount"
)

// Modes returns the credentials modes. The first is the default on a control-plane node.
func Modes() []string { return []string{ModeNode, ModeNodeInline, ModeHostPath, ModeServiceAccount} }

const (
	tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// InClusterServer is the API server's URL for pods.
	InClusterServer = "https://kubernetes.default.svc"
)

// Credentials are the scheduler's credentials for the API server.
type Credentials struct {
	// Mode is one of [Modes].
	Mode string
	// User is the client certificate's common name, which is granted the rights; usually
	// system:kube-scheduler. Not used by serviceaccount.
	User string
	// Server is the API server's URL. Empty means the API server's Service for serviceaccount, and
	// unknown for hostpath.
	Server string
	// ServerName is the name in the API server's certificate if it is not the host of Server.
	ServerName string
	// CA, Cert and Key are PEM, for node and node-inline.
	CA, Cert []byte
	Key      []byte `json:"-"`
	// HostPath is the kubeconfig's path on the node, for hostpath.
	HostPath string
}

// String returns mode, user and server, without keys.
func (c Credentials) String() string {
	return fmt.Sprintf("%s as %s at %s", c.Mode, c.User, c.Server)
}

// GoString is like String, so that %#v does not print the key.
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
				return problem.Invalidf("use --credentials serviceaccount, or a node kubeconfig that holds certificates",
					"credentials %s of scheduler %s have no %s", c.Mode, name, what)
			}
		}
	case ModeHostPath:
		if !path.IsAbs(c.HostPath) || path.Clean(c.HostPath) != c.HostPath {
			return problem.Invalidf("give the absolute path of the scheduler's kubeconfig on the node",
				"credentials hostpath of scheduler %s: %q is not a path on the node", name, c.HostPath)
		}
	case ModeServiceAccount:
	default:
		return problem.Invalidf("use one of "+strings.Join(Modes(), ", "), "scheduler %s: unknown credentials %q", name,
			c.Mode)
	}
	if c.Mode != ModeServiceAccount && c.User == "" {
		return problem.Invalidf("use --credentials serviceaccount",
			"credentials %s of scheduler %s have no user to grant rights to", c.Mode, name)
	}
	if c.Mode != ModeHostPath || c.Server != "" {
		return c.validateServer(name)
	}
	return nil
}

func (c Credentials) validateServer(name string) error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return problem.Invalidf("give the API server as https://host:port",
			"credentials %s of scheduler %s: %q is not the URL of an API server", c.Mode, name, c.Server)
	}
	return nil
}

// Warnings describes how exposed the credentials are.
func (c Credentials) Warnings() []string {
	switch c.Mode {
	case ModeNodeInline:
		return []string{"credentials node-inline keeps the private key of " + c.User +
			" in a ConfigMap: everyone with read access to ConfigMaps in the namespace can act as it; credentials node keeps " +
			"it in a Secret"}
	case ModeHostPath:
		return []string{"credentials hostpath runs the scheduler as root, without capabilities, because only root can read " +
			c.HostPath + "; credentials node runs it as an ordinary user"}
	}
	return nil
}

// HostNetwork reports whether the API server can be reached only from the node itself: its address
// is on loopback, unknown, or a name that may be in the node's hosts file. An IP address or a
// Service can be reached from the pod network.
func (c Credentials) HostNetwork() bool {
	c = c.withDefaults()
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

// root reports whether the process must be root to read its credentials.
func (c Credentials) root() bool { return c.Mode == ModeHostPath }

// kubeconfig returns the kubeconfig, nil if the node's own is mounted.
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
	if c.ServerName != "" {
		trust = fmt.Sprintf("tls-server-name: %q\n    ", c.ServerName) + trust
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
