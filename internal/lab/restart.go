//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// NodeName returns the name of the Node object: its address with the layout pmk, the lab's name
// with kubeadm.
func (l *Lab) NodeName() (string, error) {
	lay, err := findLayout(l.Layout())
	if err != nil {
		return "", err
	}
	address, err := l.NodeAddress()
	if err != nil {
		return "", err
	}
	return lay.nodeName(l.Name(), address.String()), nil
}

// NodeAddress returns the address of the node, which the machine can reach.
func (l *Lab) NodeAddress() (netip.Addr, error) {
	subnet, err := netip.ParsePrefix(l.state.Subnet)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("lab %s has no network yet: %w", l.Name(), l.notRunning())
	}
	return nodeAddr(subnet), nil
}

// StaticPods returns the kubelet's static pod path below Root: a file with the layout pmk, a
// directory with kubeadm.
func (l *Lab) StaticPods() (string, error) {
	lay, err := findLayout(l.Layout())
	if err != nil {
		return "", err
	}
	return filepath.Join(l.Root(), lay.staticPods), nil
}

// RestartNode stops and starts the kubelet and containerd, and returns when the node is ready.
// Containers keep running, as on a real node. Only tests call it.
func (l *Lab) RestartNode(ctx context.Context) error {
	err := l.restartNode(ctx)
	if err == nil {
		return nil
	}
	var logs strings.Builder
	for _, name := range []string{"containerd", "kubelet"} {
		writeTail(&logs, l.logFile(name))
	}
	return fmt.Errorf("restart the node of lab %s: %w\n%s", l.Name(), err, strings.TrimRight(logs.String(), "\n"))
}

func (l *Lab) restartNode(ctx context.Context) error {
	g, n, lay, err := l.reopen()
	if err != nil {
		return err
	}
	for _, name := range []string{"kubelet", "containerd"} {
		if err := l.stop(ctx, name, g); err != nil {
			return err
		}
	}
	wait := func(ctx context.Context, what, daemon string, check func(context.Context) error) error {
		return l.waitFor(ctx, g, what, daemon, check)
	}
	path := systemPath("")
	if err := l.startDaemon(containerdDaemon(), path); err != nil {
		return err
	}
	if err := l.waitContainerd(ctx, path, wait); err != nil {
		return err
	}
	client, err := l.client()
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := nodeReady(node); err != nil {
			return err
		}
		// The Node object may still have the status from before the restart.
		return client.CoreV1().RESTClient().Get().Resource("nodes").Name(n.name).SubResource("proxy").Suffix("healthz").Do(ctx).Error()
	}
	// While containerd recovers its containers it does not serve CRI, and a kubelet that starts then exits. A service
	// manager would start it again.
	const attempts = 5
	for attempt := 1; ; attempt++ {
		if err := l.startDaemon(kubeletDaemon(lay, n, filepath.Join(l.BinDir(), "kubelet")), path); err != nil {
			return err
		}
		var exited *exitedError
		if err := wait(ctx, "node "+n.name, "kubelet", ready); !errors.As(err, &exited) || attempt == attempts {
			return err
		}
	}
}

// reopen reads the configuration of the node's processes.
func (l *Lab) reopen() (group, node, layout, error) {
	lay, err := findLayout(l.Layout())
	if err != nil {
		return group{}, node{}, layout{}, err
	}
	address, err := l.NodeAddress()
	if err != nil {
		return group{}, node{}, layout{}, err
	}
	rules, _, err := versions.Select(l.Release())
	if err != nil {
		return group{}, node{}, layout{}, err
	}
	if running, err := l.running(); err != nil || !running {
		return group{}, node{}, layout{}, errors.Join(err, l.notRunning())
	}
	g, err := newGroup(l.dir)
	n := node{release: l.Release(), rules: rules, name: lay.nodeName(l.Name(), address.String()), host: l.Name(), address: address}
	return g, n, lay, err
}
