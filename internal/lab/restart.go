//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	rules := n.lab.Release().Rules()
	if running, err := n.running(); err != nil || !running {
		return errors.Join(err, n.lab.notRunning())
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
	if err := n.startDaemon(n.kubelet(rules), path); err != nil {
		return err
	}
	return n.waitFor(ctx, "node "+n.name, "kubelet",
		func(ctx context.Context) error { return n.checkAnswers(ctx, client) })
}

// supervise runs a program again when it has exited, as a service manager does.
const supervise = `child=
stop() {
	if [ -n "$child" ]; then
		kill -TERM "$child"
		wait "$child"
	fi
	exit 0
}
trap stop TERM
while :; do
	"$@" &
	child=$!
	wait "$child"
	child=
	sleep 1
done`

// kubelet returns how a node's kubelet is started again. While containerd recovers its containers
// it does not serve CRI, and a kubelet that starts then exits.
func (n *Node) kubelet(rules versions.Rules) daemon {
	if n.lab.byKubeadm() {
		return n.supervisedKubelet()
	}
	d := kubeletDaemon(n.lab.layout(), n.config(rules))
	d.argv = append([]string{"sh", "-c", supervise, "sh"}, d.argv...)
	return d
}
