//go:build linux

package lab

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// secrets are the credentials with which nodes join a cluster.
type secrets struct{ token, certificateKey string }

// newSecrets returns a random bootstrap token and certificate key
// (cmd/kubeadm/app/apis/bootstraptoken/v1, cmd/kubeadm/app/phases/copycerts).
func newSecrets() (secrets, error) {
	var raw [3 + 8 + 32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return secrets{}, fmt.Errorf("generate a bootstrap token: %w", err)
	}
	text := hex.EncodeToString(raw[:])
	return secrets{token: text[:6] + "." + text[6:22], certificateKey: text[22:]}, nil
}

// kubeadmSteps are the steps after the namespaces for a cluster that kubeadm makes.
func (u *bringUp) kubeadmSteps() []step {
	steps := []step{
		{name: "write the nodes' files", do: u.writeNodes},
		{name: "start containerd and load images", do: u.startNodes, logs: []string{"containerd"}},
	}
	if u.lab.balanced() {
		steps = append(steps, step{name: "start the load balancer", do: u.startBalancer, logs: []string{balancer}})
	}
	create := "create the cluster on " + u.lab.first().hostName
	steps = append(steps, step{name: create, do: u.initCluster, logs: []string{"kubelet", "containerd"}})
	for _, n := range u.lab.Nodes()[1:] {
		join := func(ctx context.Context) error { return u.join(ctx, n.hostName) }
		steps = append(steps, step{name: "join node " + n.hostName, do: join, logs: []string{"kubelet", "containerd"}})
	}
	return append(steps,
		step{name: "wait for the control plane", do: u.waitCluster, logs: []string{"kubelet", "kube-proxy"}})
}

// balanced reports whether the lab has a load balancer in front of its API servers.
func (l *Lab) balanced() bool { return l.hosted() || l.byKubeadm() && l.state.Masters > 1 }

// server returns the host and port under which clients other than the control-plane nodes find the
// API server: the load balancer's, the virtual address, or the only API server's.
func (l *Lab) server() (string, error) {
	if l.balanced() {
		at, err := l.balancerAt()
		return at.String(), err
	}
	address := l.first().address
	if virtual := l.virtualAddress(); virtual.IsValid() {
		address = virtual
	}
	return netip.AddrPortFrom(address, uint16(l.layout().port)).String(), nil
}

func (u *bringUp) cluster() (kubeadm.Cluster, error) {
	c := kubeadm.Cluster{Release: u.o.Release, Services: serviceCIDR, Socket: containerdSocket, Token: u.secrets.token}
	if !u.lab.balanced() {
		return c, nil
	}
	endpoint, err := u.lab.server()
	c.Endpoint, c.CertificateKey = endpoint, u.secrets.certificateKey
	return c, err
}

func (u *bringUp) initCluster(ctx context.Context) error {
	n := u.lab.first()
	c, err := u.cluster()
	if err != nil {
		return err
	}
	config, err := c.Init(n.forKubeadm())
	if err != nil {
		return err
	}
	if err := u.kubeadm(ctx, n, config, kubeadm.InitArgs(n.kubeadmConfig(), u.lab.balanced())); err != nil {
		return err
	}
	admin, err := os.ReadFile(filepath.Join(n.Root(), u.layout.admin))
	if err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	if err := os.WriteFile(u.lab.Kubeconfig(), admin, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := u.connect(ctx, "kubelet"); err != nil {
		return err
	}
	return u.startProxy(n)
}

func (u *bringUp) join(ctx context.Context, hostName string) error {
	n, err := u.lab.Node(hostName)
	if err != nil {
		return err
	}
	c, err := u.cluster()
	if err != nil {
		return err
	}
	server, err := u.lab.server()
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(u.lab.Root(), kubeadmPKI, "ca.crt"))
	if err != nil {
		return fmt.Errorf("read the cluster's CA: %w", err)
	}
	hash, err := caHash(ca)
	if err != nil {
		return err
	}
	config, err := c.Join(n.forKubeadm(), kubeadm.Discovery{Server: server, CAHash: hash})
	if err != nil {
		return err
	}
	if err := u.kubeadm(ctx, n, config, kubeadm.JoinArgs(n.kubeadmConfig())); err != nil {
		return err
	}
	return u.startProxy(n)
}

// kubeadm starts a node's kubelet, which waits for its configuration, and runs kubeadm.
func (u *bringUp) kubeadm(ctx context.Context, n *Node, config []byte, args []string) error {
	if err := os.WriteFile(n.kubeadmConfig(), config, 0o600); err != nil {
		return fmt.Errorf("write kubeadm's configuration: %w", err)
	}
	if err := n.startDaemon(n.supervisedKubelet(), u.machine.path); err != nil {
		return err
	}
	return n.runKubeadm(ctx, u.machine.path, args)
}

// runKubeadm runs kubeadm, which looks for the kubelet and crictl in PATH.
func (n *Node) runKubeadm(ctx context.Context, path string, args []string) error {
	return n.runLogged(ctx, n.binDir()+":"+path, append([]string{n.binary("kubeadm")}, args...)...)
}

// kubeadmConfig is the path of the configuration for kubeadm, on the machine and on the node.
func (n *Node) kubeadmConfig() string { return filepath.Join(n.dir, "kubeadm.yaml") }

// caHash returns the hash of a CA's public key by which nodes that join trust it
// (cmd/kubeadm/app/util/pubkeypin).
func caHash(text []byte) (string, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errors.New("read the cluster's CA: no PEM block")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("read the cluster's CA: %w", err)
	}
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// startProxy starts kube-proxy on a node, with a certificate that the cluster's CA signs.
func (u *bringUp) startProxy(n *Node) error {
	var ca certificates.Pair
	for path, to := range map[string]*[]byte{"ca.crt": &ca.Cert, "ca.key": &ca.Key} {
		text, err := os.ReadFile(filepath.Join(u.lab.Root(), kubeadmPKI, path))
		if err != nil {
			return fmt.Errorf("read the cluster's CA: %w", err)
		}
		*to = text
	}
	authority, err := certificates.ParseAuthority(ca)
	if err != nil {
		return fmt.Errorf("read the cluster's CA: %w", err)
	}
	const user = "system:kube-proxy"
	pair, err := authority.Sign(certificate(identity{name: user}, time.Now()))
	if err != nil {
		return err
	}
	server, err := u.lab.server()
	if err != nil {
		return err
	}
	files, err := kubeconfigs([]kubeconfigAt{{u.layout.proxy, access{
		server: "https://" + server, cluster: "kubernetes", user: user,
		contexts: []contextName{{name: user + "@kubernetes"}}, ca: ca.Cert, pair: pair,
	}}})
	if err != nil {
		return err
	}
	if err := n.write(files); err != nil {
		return err
	}
	return n.startDaemon(proxyDaemon(n.binary("kube-proxy")), u.machine.path)
}

// waitCluster waits until every node is ready, and then for the control plane.
func (u *bringUp) waitCluster(ctx context.Context) error {
	for _, n := range u.lab.Nodes() {
		if err := n.waitReady(ctx, u.client); err != nil {
			return err
		}
	}
	return u.waitControlPlane(ctx)
}
