//go:build linux

package lab

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
)

func (n *Node) forKubeadm() kubeadm.Node {
	return kubeadm.Node{Name: n.name, Address: n.address, ControlPlane: n.role == ControlPlane}
}

func (u *bringUp) writeNodes(context.Context) error {
	for _, n := range u.lab.Nodes() {
		files, err := u.nodeFiles(n)
		if err != nil {
			return err
		}
		if err := n.write(files); err != nil {
			return err
		}
		if err := n.install(u.programs, u.machine.cniDir); err != nil {
			return err
		}
		if err := n.writeKubeletScript(); err != nil {
			return err
		}
	}
	return nil
}

// nodeFiles returns the files of a node that kubeadm does not write.
func (u *bringUp) nodeFiles(n *Node) ([]file, error) {
	proxy, err := proxyConfiguration(u.layout, n.config(u.rules))
	if err != nil {
		return nil, err
	}
	network, err := networkConfiguration(n.pods.String())
	if err != nil {
		return nil, err
	}
	files := []file{
		{proxyConfigPath, 0o644, proxy},
		{"/etc/cni/net.d/10-lab.conflist", 0o644, network},
		{containerdConfigPath, 0o644, containerdConfiguration(u.images["pause"])},
	}
	if n.role == ControlPlane {
		files = append(files, file{kubeadm.AuditPolicyPath, 0o600, []byte(kubeadm.AuditPolicy())})
	}
	return files, nil
}

// startNodes starts containerd on every node and loads the images.
func (u *bringUp) startNodes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, n := range u.lab.Nodes() {
		group.Go(func() error {
			if err := n.startContainerd(ctx, u.machine.path); err != nil {
				return fmt.Errorf("node %s: %w", n.name, err)
			}
			return n.loadImages(ctx, u.archivesFor(n))
		})
	}
	return group.Wait()
}
