//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
)

// kubeadmUpgradeSteps upgrade the nodes of a cluster that kubeadm made: as an administrator does
// it, one node after the other, each with kubeadm first and then the kubelet.
func (u *bringUp) kubeadmUpgradeSteps() []step {
	var steps []step
	for i, n := range u.lab.Nodes() {
		args := kubeadm.UpgradeNodeArgs()
		if i == 0 {
			args = kubeadm.UpgradeApplyArgs(u.o.Release)
		}
		steps = append(steps, step{
			name: "upgrade node " + n.name,
			do:   func(ctx context.Context) error { return u.upgradeWithKubeadm(ctx, n, args) },
			logs: []string{"kubelet", "containerd"},
		})
	}
	return steps
}

func (u *bringUp) loadImagesEverywhere(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, n := range u.lab.clusterNodes() {
		group.Go(func() error {
			if running, err := n.running(); err != nil || !running {
				return fmt.Errorf("every node must be running: %w", n.notRunning())
			}
			return n.loadImages(ctx, u.archivesFor(n))
		})
	}
	return group.Wait()
}

// upgradeWithKubeadm runs kubeadm's upgrade command on a node and then replaces the node's own
// programs.
func (u *bringUp) upgradeWithKubeadm(ctx context.Context, n *Node, args []string) error {
	if err := replaceProgram(u.programs["kubeadm"], n.binary("kubeadm")); err != nil {
		return err
	}
	if u.rules.KubeadmCrictl {
		if err := os.WriteFile(n.binary("crictl"), []byte(crictlScript), 0o755); err != nil {
			return fmt.Errorf("install crictl: %w", err)
		}
	}
	if err := n.runKubeadm(ctx, u.machine.path, args); err != nil {
		return err
	}
	for _, name := range []string{"kube-proxy", "kubelet"} {
		if err := n.stop(ctx, name); err != nil {
			return err
		}
	}
	if err := n.replacePrograms(u.programs); err != nil {
		return err
	}
	for _, d := range []daemon{n.supervisedKubelet(), proxyDaemon(n.binary("kube-proxy"))} {
		if err := n.startDaemon(d, u.machine.path); err != nil {
			return err
		}
	}
	if err := n.waitUpgraded(ctx, u.client, u.o.Release); err != nil {
		return err
	}
	return u.waitSettled(ctx, n)
}

// settled is the time for which the control plane must be ready before the next node is upgraded.
const settled = 20 * time.Second

// waitSettled waits until the static pods of n, if it has any, stay ready: another minor release's
// kubelet restarts their containers some seconds after it has reported its node as ready
// (containerChanged in pkg/kubelet/kuberuntime/kuberuntime_manager.go).
func (u *bringUp) waitSettled(ctx context.Context, n *Node) error {
	if n.role != ControlPlane {
		return nil
	}
	var since time.Time
	return n.waitFor(ctx, "the control plane of node "+n.name, "kubelet", func(ctx context.Context) error {
		for _, name := range kubeadm.Components() {
			if err := checkPod(ctx, u.client, name+"-"+n.name, checkPodReady); err != nil {
				since = time.Time{}
				return err
			}
		}
		if since.IsZero() {
			since = time.Now()
		}
		if ready := time.Since(since); ready < settled {
			return fmt.Errorf("it is ready since %s only", ready.Round(time.Second))
		}
		return nil
	})
}
