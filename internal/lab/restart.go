//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// RestartNode stops and starts the kubelet and containerd of the first node, and returns when the
// node is ready. Containers keep running, as on a real node. Only tests call it.
func (l *Lab) RestartNode(ctx context.Context) error {
	n := l.first()
	err := n.restart(ctx)
	if err == nil {
		return nil
	}
	var logs strings.Builder
	for _, name := range []string{"containerd", "kubelet"} {
		writeTail(&logs, n.logFile(name))
	}
	return fmt.Errorf("restart the node of lab %s: %w\n%s", l.Name(), err, strings.TrimRight(logs.String(), "\n"))
}

func (n *Node) restart(ctx context.Context) error {
	kubelet, err := n.kubelet()
	if err != nil {
		return err
	}
	for _, name := range []string{"kubelet", "containerd"} {
		if err := n.stop(ctx, name); err != nil {
			return err
		}
	}
	path := systemPath("")
	if err := n.startContainerd(ctx, path); err != nil {
		return err
	}
	client, err := n.lab.client()
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
		if err := n.startDaemon(kubelet, path); err != nil {
			return err
		}
		var exited *exitedError
		if err := n.waitFor(ctx, "node "+n.name, "kubelet", ready); !errors.As(err, &exited) || attempt == attempts {
			return err
		}
	}
}

// kubelet returns how the kubelet of a running node is started.
func (n *Node) kubelet() (daemon, error) {
	lay, err := findLayout(n.lab.Layout())
	if err != nil {
		return daemon{}, err
	}
	rules, _, err := versions.Select(n.lab.Release())
	if err != nil {
		return daemon{}, err
	}
	if running, err := n.running(); err != nil || !running {
		return daemon{}, errors.Join(err, n.lab.notRunning())
	}
	return kubeletDaemon(lay, n.config(rules), n.binary("kubelet")), nil
}
