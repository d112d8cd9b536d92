//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// makeNamespaces claims the lab's name, creates its cgroups and namespaces, and links them to each
// other and to the machine.
func (u *bringUp) makeNamespaces(ctx context.Context) error {
	if err := u.claim(); err != nil {
		return err
	}
	lock, err := lockDir(ctx, u.lab.dir, 0)
	if err != nil {
		return fmt.Errorf("lock the lab: %w", err)
	}
	u.unlock = lock
	g, err := newGroup(groupName(u.lab.dir))
	if err != nil {
		return err
	}
	if err := g.create(); err != nil {
		return err
	}
	if err := u.makeNetwork(ctx); err != nil {
		return err
	}
	for _, n := range u.lab.Nodes() {
		if err := n.prepare([]string{u.o.StateDir, u.o.CacheDir}); err != nil {
			return err
		}
		if err := n.boot(ctx, u.machine.path); err != nil {
			return err
		}
	}
	return nil
}

// makeNetwork chooses the lab's network, starts its namespaces and links them to the machine.
func (u *bringUp) makeNetwork(ctx context.Context) error {
	unlock, err := lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	used, err := machineNetworks()
	if err != nil {
		return err
	}
	subnet, err := chooseSubnet(subnetPools(), used)
	if err != nil {
		return err
	}
	u.lab.state.Subnet = subnet.String()
	if err := u.lab.save(); err != nil {
		return err
	}
	network := u.lab.network()
	g, err := network.group()
	if err != nil {
		return err
	}
	if err := network.writeScripts(networkScript, u.lab.networkScripts(g, subnet)); err != nil {
		return err
	}
	if err := network.boot(ctx, os.Getpid(), u.machine.path); err != nil {
		return err
	}
	return setUpLink(linkName(u.lab.dir), subnet)
}

// writeFiles writes the files of the control-plane nodes, and a kubeconfig for the machine.
func (u *bringUp) writeFiles(context.Context) error {
	shared, err := newAuthorities(time.Now())
	if err != nil {
		return err
	}
	var keys credentials
	for _, n := range u.lab.masters() {
		if keys, err = u.writeMaster(n, shared); err != nil {
			return err
		}
	}
	server, err := u.lab.server()
	if err != nil {
		return err
	}
	outside, err := kubeconfig(access{
		server:  "https://" + server,
		cluster: u.lab.Name(), user: "kubernetes-admin", contexts: []contextName{{name: "lab-" + u.lab.Name()}},
		ca: keys.ca.Cert, pair: keys.admin,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.lab.Kubeconfig(), outside, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// writeMaster writes a control-plane node's files, and returns its keys.
func (u *bringUp) writeMaster(n *Node, shared authorities) (credentials, error) {
	c := n.config(u.rules)
	var err error
	if c.keys, err = shared.credentials(c, n.hostName, time.Now()); err != nil {
		return c.keys, err
	}
	files, err := u.layout.allFiles(c)
	if err != nil {
		return c.keys, err
	}
	if c.virtual.IsValid() {
		files = append(files, file{keeperConfigPath, 0o644, keeperConfiguration(c, n.apiServerCheck(u.layout))})
	}
	if err := n.write(files); err != nil {
		return c.keys, err
	}
	if err := n.install(u.programs, u.machine.cniDir); err != nil {
		return c.keys, err
	}
	if err := linkOrCopy(u.programs["kubelet"], filepath.Join(n.Root(), u.layout.kubeletBinary)); err != nil {
		return c.keys, fmt.Errorf("install kubelet: %w", err)
	}
	return c.keys, nil
}

// startRuntime starts etcd and containerd on every node. The members of etcd wait for each other.
func (u *bringUp) startRuntime(ctx context.Context) error {
	for _, n := range u.lab.masters() {
		if err := n.startDaemon(etcdDaemon(n.binary("etcd"), n.config(u.rules)), u.machine.path); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range u.lab.masters() {
		group.Go(func() error { return n.startContainerd(ctx, u.machine.path) })
	}
	return group.Wait()
}

// startAPIServers starts every node's kubelet, which starts the static pods, and waits for the API
// servers.
func (u *bringUp) startAPIServers(ctx context.Context) error {
	for _, n := range u.lab.masters() {
		if err := n.startDaemon(kubeletDaemon(u.layout, n.config(u.rules)), u.machine.path); err != nil {
			return err
		}
	}
	for _, n := range u.lab.masters() {
		if err := n.waitFor(ctx, "the API server of node "+n.name, "kubelet", n.checkAPIServer); err != nil {
			return err
		}
	}
	if u.o.Masters > 1 {
		return nil // They are reached at the virtual address.
	}
	return u.connect(ctx, "kubelet")
}

// connect waits until the API server answers, or the named daemon of the first node has exited.
func (u *bringUp) connect(ctx context.Context, daemon string) error {
	client, err := u.lab.client()
	if err != nil {
		return err
	}
	u.client = client
	return u.lab.first().waitFor(ctx, "the API server", daemon, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// restConfig reads the administrator's kubeconfig. There is no proxy between the machine and the
// node.
func (l *Lab) restConfig() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of lab %s: %w", l.Name(), err)
	}
	cfg.Proxy = direct
	cfg.QPS = -1 // no limit
	cfg.Timeout = 30 * time.Second
	return cfg, nil
}

func (l *Lab) client() (kubernetes.Interface, error) {
	cfg, err := l.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to lab %s: %w", l.Name(), err)
	}
	return client, nil
}
