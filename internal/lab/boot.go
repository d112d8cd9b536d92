//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/versions"
)

func (n *Node) create() error {
	if err := n.host.create(); err != nil {
		return err
	}
	dirs := []string{n.binDir(), filepath.Join(n.Root(), statePath)}
	for _, dir := range boundPaths() {
		dirs = append(dirs, filepath.Join(n.Root(), dir))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create the lab's directory: %w", err)
		}
	}
	return nil
}

// prepare writes the scripts that start the node. The node sees the directories in kept as the
// machine does.
func (n *Node) prepare(kept []string) error {
	subnet, err := netip.ParsePrefix(n.lab.state.Subnet)
	if err != nil {
		return fmt.Errorf("read the lab's network: %w", err)
	}
	g, err := n.group()
	if err != nil {
		return err
	}
	return n.writeScripts(nodeScript, n.scripts(g, subnet, kept))
}

// boot starts the namespaces of the node and connects them to the lab's network, which must be
// running.
func (n *Node) boot(ctx context.Context, path string) error {
	if err := n.host.boot(ctx, n.lab.network().readPID(holder), path); err != nil {
		return err
	}
	return n.plug(ctx, path)
}

// config returns the data for a control-plane node's files, without keys.
func (n *Node) config(rules versions.Rules) nodeConfig {
	c := nodeConfig{release: n.lab.Release(), rules: rules, name: n.name, address: n.address, pods: n.pods,
		virtual: n.lab.virtualAddress()}
	if c.virtual.IsValid() {
		for _, m := range n.lab.masters() {
			c.members = append(c.members, member{m.hostName, m.address})
		}
	}
	if n.lab.hosted() {
		c.endpoint, _ = n.lab.balancerAt() // invalid until the lab has a network, like the address
		c.zone = n.zone
	}
	return c
}

func (n *Node) write(files []file) error {
	for _, f := range files {
		path := filepath.Join(n.Root(), f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	return nil
}

// install installs programs and, from the directory cniDir, the CNI plugins.
func (n *Node) install(programs map[string]string, cniDir string) error {
	for name, from := range programs {
		if err := linkOrCopy(from, n.binary(name)); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	for _, name := range pluginsOfNetwork() {
		if err := linkOrCopy(filepath.Join(cniDir, name), filepath.Join(n.Root(), "opt/cni/bin", name)); err != nil {
			return fmt.Errorf("install CNI plugin %s: %w", name, err)
		}
	}
	return nil
}

// startContainerd starts containerd and waits until it answers.
func (n *Node) startContainerd(ctx context.Context, path string) error {
	if err := n.startDaemon(containerdDaemon(), path); err != nil {
		return err
	}
	return n.waitFor(ctx, "containerd", "containerd", func(ctx context.Context) error {
		return n.run(ctx, path, "ctr", "--address", containerdSocket, "--connect-timeout", "2s", "version")
	})
}

func (n *Node) loadImages(ctx context.Context, archives []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, archive := range archives {
		group.Go(func() error {
			err := n.run(ctx, systemPath(""), "ctr", "--address", containerdSocket, "--namespace", "k8s.io", "images",
				"import", archive)
			if err != nil {
				return fmt.Errorf("load image %s: %w", archive, err)
			}
			return nil
		})
	}
	return group.Wait()
}
