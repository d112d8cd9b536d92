//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// StopNode kills every process on a node at once, as a power loss does. Its files stay.
func (l *Lab) StopNode(ctx context.Context, name string) error {
	return l.change(ctx, name, "stop", func(n *Node, running bool) error {
		if !running {
			return nil
		}
		g, err := n.group()
		if err != nil {
			return err
		}
		if err := g.remove(ctx); err != nil {
			return err
		}
		return n.removeRemains(ctx)
	})
}

// removeRemains removes the remains of a node without processes: its link, which the kernel removes
// some time later, its process IDs, and /run.
func (n *Node) removeRemains(ctx context.Context) error {
	remove := `! ip link show dev "$0" >/dev/null 2>&1 || ip link delete dev "$0" 2>/dev/null || ! ip link show dev "$0" >/dev/null 2>&1`
	if err := n.lab.network().run(ctx, systemPath(""), "sh", "-c", remove, n.port()); err != nil {
		return fmt.Errorf("remove its link: %w", err)
	}
	for _, dir := range []string{filepath.Dir(n.pidFile(holder)), filepath.Join(n.Root(), "run")} {
		if err := emptyDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// StartNode starts a node that was stopped, and waits until it is ready. It does not wait for the
// node if too many control-plane nodes are stopped for the API server to work.
func (l *Lab) StartNode(ctx context.Context, name string) error {
	return l.change(ctx, name, "start", func(n *Node, running bool) error {
		if running {
			return nil
		}
		// The last stop may have been interrupted.
		if err := n.removeRemains(ctx); err != nil {
			return err
		}
		path := systemPath("")
		if err := n.boot(ctx, path); err != nil {
			return err
		}
		if err := n.startDaemons(ctx, path); err != nil {
			return err
		}
		if quorum, err := l.hasQuorum(); err != nil || !quorum {
			return err
		}
		client, err := l.client()
		if err != nil {
			return err
		}
		return n.waitFor(ctx, "node "+n.name, n.daemons()[1],
			func(ctx context.Context) error { return n.checkAnswers(ctx, client) })
	})
}

// startDaemons starts the processes of a node that was up before.
func (n *Node) startDaemons(ctx context.Context, path string) error {
	rules := n.lab.Release().Rules()
	if !n.hasKubelet() {
		return n.startHosted(ctx, rules, path)
	}
	if !n.lab.byKubeadm() && !n.lab.hosted() {
		if err := n.runAgent(rules); err != nil {
			return err
		}
		if err := n.startDaemon(etcdDaemon(n.binary("etcd"), n.config(rules)), path); err != nil {
			return err
		}
	}
	if err := n.startContainerd(ctx, path); err != nil {
		return err
	}
	daemons := []daemon{n.kubelet(rules), proxyDaemon(n.binary("kube-proxy"))}
	if n.lab.virtualAddress().IsValid() {
		daemons = append(daemons, keeperDaemon())
	}
	for _, d := range daemons {
		if err := n.startDaemon(d, path); err != nil {
			return err
		}
	}
	return nil
}

// hasQuorum reports whether most control-plane nodes are running. Hosts with a hosted control plane
// have no etcd member: one running host is enough.
func (l *Lab) hasQuorum() (bool, error) {
	masters := l.masters()
	count := 0
	for _, n := range masters {
		running, err := n.running()
		if err != nil {
			return false, err
		}
		if running {
			count++
		}
	}
	if l.hosted() {
		return count > 0, nil
	}
	return 2*count > len(masters), nil
}

// checkAnswers returns an error until the node is ready and its kubelet and its API server answer:
// right after a start the Node object still has its old status.
func (n *Node) checkAnswers(ctx context.Context, client kubernetes.Interface) error {
	if err := n.checkAPIServer(ctx); err != nil {
		return err
	}
	if !n.hasKubelet() {
		return nil
	}
	object, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := checkNodeReady(object); err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Get().Resource("nodes").Name(n.name).SubResource("proxy").Suffix("healthz").Do(
		ctx).Error()
}

// checkAPIServer returns an error until a control-plane node's API server is ready, which it is
// after its etcd member. Before that, the loss of another node can stop the cluster.
func (n *Node) checkAPIServer(ctx context.Context) error {
	if n.role != ControlPlane {
		return nil
	}
	client, err := n.client()
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (n *Node) client() (kubernetes.Interface, error) {
	cfg, err := n.lab.restConfig()
	if err != nil {
		return nil, err
	}
	cfg.Host = "https://" + net.JoinHostPort(n.address.String(), strconv.Itoa(n.lab.layout().port))
	return kubernetes.NewForConfig(cfg)
}

// CutNode disconnects a node from the network: it keeps running, and reaches nothing but itself.
func (l *Lab) CutNode(ctx context.Context, name string) error {
	return l.change(ctx, name, "cut the network of", func(n *Node, running bool) error {
		if !running {
			return n.notRunning()
		}
		return n.unplug(ctx, systemPath(""))
	})
}

// HealNode connects a node to the network again.
func (l *Lab) HealNode(ctx context.Context, name string) error {
	return l.change(ctx, name, "restore the network of", func(n *Node, running bool) error {
		if !running {
			return n.notRunning()
		}
		return n.plug(ctx, systemPath(""))
	})
}

// change changes a node of a running lab while no other process changes the lab.
func (l *Lab) change(ctx context.Context, name, verb string, do func(n *Node, running bool) error) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	unlock, err := lockDir(ctx, l.dir, 10*time.Second)
	if errors.Is(err, errLocked) {
		return problem.Errorf("wait for the other command", "%s node %s: another process is working on lab %s", verb,
			n.name, l.Name())
	}
	if err != nil {
		return fmt.Errorf("%s node %s: lock the lab: %w", verb, n.name, err)
	}
	defer unlock()
	if running, err := l.network().running(); err != nil || !running {
		return errors.Join(err, l.notRunning())
	}
	running, err := n.running()
	if err != nil {
		return fmt.Errorf("%s node %s: %w", verb, n.name, err)
	}
	if err := do(n, running); err != nil {
		return fmt.Errorf("%s node %s: %w", verb, n.name, err)
	}
	return nil
}
