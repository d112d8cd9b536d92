//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/versions"
)

// hostedSteps are the steps after the namespaces for a cluster whose control plane is hosted.
func (u *bringUp) hostedSteps() []step {
	plane := []string{"kube-apiserver", "etcd", balancer}
	return []step{
		{name: "write the hosts' and nodes' files", do: u.writeHosted},
		{name: "start the control plane", do: u.startHosted, logs: plane},
		{name: "start containerd and load images", do: u.startHostedRuntime, logs: []string{"containerd"}},
		{name: "start the workers", do: u.startHostedWorkers, logs: []string{"kubelet", "containerd"}},
		{name: "wait for the control plane", do: u.waitHosted,
			logs: []string{"kube-controller-manager", "kube-scheduler", "kube-proxy"}},
	}
}

// writeHosted writes the files for etcd, the control-plane hosts and the workers.
func (u *bringUp) writeHosted(context.Context) error {
	now := time.Now()
	shared, err := newAuthorities(now)
	if err != nil {
		return err
	}
	if err := u.writeEtcd(shared, now); err != nil {
		return err
	}
	for _, n := range u.lab.Nodes() {
		c := n.config(u.rules)
		if c.keys, err = shared.credentials(c, n.hostName, now); err != nil {
			return err
		}
		files, err := u.hostedFiles(n, c)
		if err != nil {
			return err
		}
		if err := errors.Join(n.write(files), n.install(u.programs, u.machine.cniDir)); err != nil {
			return err
		}
		if n.hasKubelet() {
			if err := linkOrCopy(u.programs["kubelet"], filepath.Join(n.Root(), u.layout.kubeletBinary)); err != nil {
				return fmt.Errorf("install kubelet: %w", err)
			}
			continue
		}
		outside, err := kubeconfig(hostedAccess(c, "kubernetes-admin", c.keys.admin))
		if err == nil {
			err = os.WriteFile(u.lab.Kubeconfig(), outside, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	return nil
}

// hostedFiles returns the files for a worker or a control-plane host.
func (u *bringUp) hostedFiles(n *Node, c nodeConfig) ([]file, error) {
	if n.hasKubelet() {
		return u.layout.allFiles(c)
	}
	keys, err := hostedIdentities(c)
	if err != nil {
		return nil, err
	}
	settings, err := hostedSettings(c)
	return append(keys, settings...), err
}

// etcdDir is the directory of etcd, which runs in the lab's network: losing a host does not stop
// it.
func (l *Lab) etcdDir() string { return filepath.Join(l.network().dir, "etcd") }

func (u *bringUp) writeEtcd(shared authorities, now time.Time) error {
	at, err := u.lab.balancerAt()
	if err != nil {
		return err
	}
	server, err := shared.etcd.Sign(certificate(identity{name: etcdPeerName, server: true, client: true,
		ips: []net.IP{at.Addr().AsSlice()}}, now))
	if err != nil {
		return err
	}
	dir := filepath.Join(u.lab.etcdDir(), "pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write etcd's certificates: %w", err)
	}
	files := append(keyFiles("", map[string]certificates.Pair{"server": server}),
		file{"ca.crt", 0o644, shared.etcd.Cert})
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.path), f.data, f.mode); err != nil {
			return fmt.Errorf("write etcd's certificates: %w", err)
		}
	}
	return nil
}

// startHosted starts etcd, the load balancer and the programs of each host.
func (u *bringUp) startHosted(ctx context.Context) error {
	at, err := u.lab.balancerAt()
	if err != nil {
		return err
	}
	etcd := hostedEtcd(u.lab.first().binary("etcd"), u.lab.etcdDir(), at)
	if err := u.lab.network().startDaemon(etcd, u.machine.path); err != nil {
		return err
	}
	if err := u.startBalancer(ctx); err != nil {
		return err
	}
	for _, n := range u.lab.masters() {
		if err := n.startHosted(ctx, u.rules, u.machine.path); err != nil {
			return err
		}
	}
	if err := u.connect(ctx, "kube-apiserver"); err != nil {
		return err
	}
	return u.lab.first().waitFor(ctx, "the endpoints of Service kubernetes", "kube-apiserver", u.writeEndpoints)
}

// startHosted starts the programs on a control-plane host: the API server first, and the other
// programs, which exit without it, when it is ready.
func (n *Node) startHosted(ctx context.Context, rules versions.Rules, path string) error {
	for _, d := range hostedDaemons(n.config(rules), n.binary) {
		if err := n.startDaemon(d, path); err != nil {
			return err
		}
		if d.name != "kube-apiserver" {
			continue
		}
		if err := n.waitFor(ctx, "the API server of "+n.hostName, d.name, n.checkAPIServer); err != nil {
			return err
		}
	}
	return nil
}

// writeEndpoints makes the load balancer the endpoint of Service kubernetes. The
// controller-manager mirrors it to an EndpointSlice (pkg/controller/endpointslicemirroring).
func (u *bringUp) writeEndpoints(ctx context.Context) error {
	at, err := u.lab.balancerAt()
	if err != nil {
		return err
	}
	endpoints := &corev1.Endpoints{ //nolint:staticcheck // every release has it
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: metav1.NamespaceDefault},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // every release has it
			Addresses: []corev1.EndpointAddress{{IP: at.Addr().String()}}, //nolint:staticcheck // every release has it
			Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(at.Port()), Protocol: corev1.ProtocolTCP}},
		}},
	}
	_, err = u.client.CoreV1().Endpoints(endpoints.Namespace).Create(ctx, endpoints, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (u *bringUp) startHostedRuntime(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, n := range u.lab.clusterNodes() {
		group.Go(func() error {
			if err := n.startContainerd(ctx, u.machine.path); err != nil {
				return fmt.Errorf("node %s: %w", n.name, err)
			}
			return n.loadImages(ctx, u.archivesFor(n))
		})
	}
	return group.Wait()
}

// startHostedWorkers starts kubelet and kube-proxy of each worker and waits until the nodes are
// ready.
func (u *bringUp) startHostedWorkers(ctx context.Context) error {
	for _, n := range u.lab.clusterNodes() {
		for _, d := range []daemon{kubeletDaemon(u.layout, n.config(u.rules)), proxyDaemon(n.binary("kube-proxy"))} {
			if err := n.startDaemon(d, u.machine.path); err != nil {
				return err
			}
		}
	}
	for _, n := range u.lab.clusterNodes() {
		if err := n.waitReady(ctx, u.client); err != nil {
			return err
		}
	}
	return nil
}

// waitHosted waits until the controllers have created the objects that every pod needs, the
// scheduler leads, and Services work on every worker.
func (u *bringUp) waitHosted(ctx context.Context) error {
	first := u.lab.first()
	if err := first.waitFor(ctx, "the default service account", "kube-controller-manager",
		func(ctx context.Context) error { return checkDefaultAccount(ctx, u.client) }); err != nil {
		return err
	}
	if err := first.waitFor(ctx, "the scheduler", "kube-scheduler",
		func(ctx context.Context) error { return checkSchedulerLeads(ctx, u.client) }); err != nil {
		return err
	}
	for _, n := range u.lab.clusterNodes() {
		if err := n.waitFor(ctx, "services", "kube-proxy", n.checkServices); err != nil {
			return err
		}
	}
	return nil
}

// hostedUpgradeSteps upgrade the control plane, one host after the other, and then the workers: a
// provider changes the control plane under nodes that keep their kubelets until they are replaced.
func (u *bringUp) hostedUpgradeSteps() []step {
	var steps []step
	for _, n := range u.lab.masters() {
		steps = append(steps, step{name: "upgrade the control plane on " + n.hostName,
			do:   func(ctx context.Context) error { return u.upgradeHosted(ctx, n) },
			logs: components()})
	}
	for _, n := range u.lab.clusterNodes() {
		steps = append(steps, step{name: "upgrade node " + n.hostName,
			do:   func(ctx context.Context) error { return u.upgradeNode(ctx, n) },
			logs: []string{"kubelet"}})
	}
	return steps
}

// upgradeHosted replaces the programs on a control-plane host.
func (u *bringUp) upgradeHosted(ctx context.Context, n *Node) error {
	c := u.upgraded(n)
	files, err := hostedSettings(c)
	if err != nil {
		return err
	}
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver"} {
		if err := n.stop(ctx, name); err != nil {
			return err
		}
	}
	paths := map[string]string{}
	for _, name := range append(components(), "kubectl") {
		paths[name] = u.programs[name]
	}
	if err := errors.Join(n.replaceFiles(files), n.replacePrograms(paths)); err != nil {
		return err
	}
	return n.startHosted(ctx, u.rules, u.machine.path)
}
