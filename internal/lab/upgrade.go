//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Upgrade upgrades the lab o.Name to o.Release as an administrator would: first the control plane,
// then the node's own programs, with the same data and keys; with kubeadm if it created the
// cluster, one node after the other. Workloads keep running. o's layout, node numbers and Keep are
// ignored. A release that Kubernetes does not upgrade to in one step is refused with an Invalid
// error. If Upgrade fails, calling it again continues.
func Upgrade(ctx context.Context, o Options) (*Lab, error) {
	u, err := newUpgrade(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { u.unlock() }()
	for _, s := range u.upgradeSteps() {
		if err := u.do(ctx, s); err != nil {
			err = u.withLogs(s, fmt.Errorf("%s: %w", s.name, err))
			return nil, problem.WithHint(err, "run it again to continue")
		}
	}
	u.lab.state.Release = u.o.Release
	return u.lab, u.lab.save()
}

func (u *bringUp) upgradeSteps() []step {
	steps := []step{
		{name: "check this machine", do: u.findPrograms},
		{name: "get Kubernetes " + u.o.Release.String(), do: u.getPrograms},
		{name: "make images", do: u.makeImages},
		{name: "load images", do: u.loadImagesEverywhere, logs: []string{"containerd"}},
	}
	wait := u.waitCluster
	switch {
	case u.lab.byKubeadm():
		steps = append(steps, u.kubeadmUpgradeSteps()...)
	case u.lab.hosted():
		steps, wait = append(steps, u.hostedUpgradeSteps()...), u.waitHosted
	default:
		wait = u.waitControlPlane
		for _, n := range u.lab.masters() {
			controlPlane := func(ctx context.Context) error { return u.upgradeControlPlane(ctx, n) }
			node := func(ctx context.Context) error { return u.upgradeNode(ctx, n) }
			steps = append(steps,
				step{name: "upgrade the control plane of " + n.name, do: controlPlane,
					logs: []string{"kubelet", "etcd"}},
				step{name: "upgrade node " + n.name, do: node, logs: []string{"kubelet"}},
			)
		}
	}
	return append(steps, step{name: "wait for the control plane", do: wait, logs: []string{"kubelet", "kube-proxy"}})
}

// newUpgrade returns the state for the steps.
func newUpgrade(ctx context.Context, o Options) (*bringUp, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	l, err := Get(o.StateDir, o.Name)
	if err != nil {
		return nil, err
	}
	unlock, err := lockDir(ctx, l.dir, 0)
	if err != nil {
		return nil, fmt.Errorf("lock lab %s: %w", o.Name, err)
	}
	u, err := l.upgrade(o)
	if err != nil {
		unlock()
		return nil, err
	}
	u.unlock = unlock
	return u, nil
}

func (l *Lab) upgrade(o Options) (*bringUp, error) {
	if err := checkUpgrade(l.Release(), o.Release, l.byKubeadm()); err != nil {
		return nil, err
	}
	lay := l.layout()
	rules, err := versions.Select(o.Release)
	if err != nil {
		return nil, err
	}
	if running, err := l.first().running(); err != nil || !running {
		return nil, errors.Join(err, l.notRunning())
	}
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	if o.Programs == nil {
		o.Programs = &programs.Finder{Environment: o.environment(), From: programs.Build}
	}
	u := &bringUp{
		o: o, log: o.Log, lab: l, layout: lay, rules: rules, client: client,
		programs: map[string]string{}, unlock: func() {},
	}
	u.o.Layout, u.o.Masters, u.o.Workers, u.o.Nodes = lay.name, l.state.Masters, l.state.Workers, l.state.Nodes
	return u, nil
}

// checkUpgrade returns an error for an upgrade that Kubernetes does not support: a downgrade, or
// skipping a minor. etcd cannot read data of an etcd two minors older either; kubeadm upgrades it
// one minor at a time.
func checkUpgrade(from, to versions.Release, byKubeadm bool) error {
	const hint = "take the lab down and create one with the other release"
	switch {
	case to.Compare(from) < 0:
		return problem.Invalidf(hint, "a lab cannot go back from %s to %s", from, to)
	case to.Major != from.Major || to.Minor > from.Minor+1:
		return problem.Invalidf("upgrade one minor at a time", "a lab cannot go from %s to %s in one step", from, to)
	case !byKubeadm && from.Rules().Etcd34 && !to.Rules().Etcd34:
		return problem.Invalidf(hint,
			"a lab cannot go from %s to %s: the etcd of one cannot read the data of the other", from, to)
	}
	return nil
}

// upgraded returns the data for the files of a node in the release to which it is upgraded.
func (u *bringUp) upgraded(n *Node) nodeConfig {
	c := n.config(u.rules)
	c.release = u.o.Release
	return c
}

// upgradeControlPlane writes the static pods of the new release on a node and waits until they run.
func (u *bringUp) upgradeControlPlane(ctx context.Context, n *Node) error {
	files, err := n.settings(u.layout, u.upgraded(n))
	if err != nil {
		return err
	}
	if err := n.replaceFiles(files); err != nil {
		return err
	}
	client, err := n.client()
	if err != nil {
		return err
	}
	return n.waitFor(ctx, "the API server of "+u.o.Release.String(), "kubelet", func(context.Context) error {
		version, err := client.Discovery().ServerVersion()
		if err == nil && version.GitVersion != u.o.Release.String() {
			err = fmt.Errorf("it still runs %s", version.GitVersion)
		}
		return err
	})
}

func (u *bringUp) upgradeNode(ctx context.Context, n *Node) error {
	files, err := u.layout.sharedSettings(u.upgraded(n))
	if err != nil {
		return err
	}
	for _, name := range []string{"kube-proxy", "kubelet"} {
		if err := n.stop(ctx, name); err != nil {
			return err
		}
	}
	if err := errors.Join(n.replaceFiles(files), u.replacePrograms(n)); err != nil {
		return err
	}
	for _, d := range []daemon{kubeletDaemon(u.layout, u.upgraded(n)), proxyDaemon(n.binary("kube-proxy"))} {
		if err := n.startDaemon(d, u.machine.path); err != nil {
			return err
		}
	}
	if err := n.waitUpgraded(ctx, u.client, u.o.Release); err != nil {
		return err
	}
	return u.waitMirrors(ctx, n)
}

// waitUpgraded waits until the node is ready with the kubelet of release r.
func (n *Node) waitUpgraded(ctx context.Context, client kubernetes.Interface, r versions.Release) error {
	return n.waitFor(ctx, "node "+n.name, "kubelet", func(ctx context.Context) error {
		object, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if have := object.Status.NodeInfo.KubeletVersion; have != r.String() {
			return fmt.Errorf("its kubelet reports %s", have)
		}
		return checkNodeReady(object)
	})
}

// waitMirrors waits until the API shows the new static pods: the old ones may have been ready as
// well.
func (u *bringUp) waitMirrors(ctx context.Context, n *Node) error {
	return n.waitStaticPods(ctx, u.client, u.layout.controlPlane, func(p *corev1.Pod) error {
		for _, c := range p.Spec.Containers {
			if c.Image != componentImage(c.Name, u.o.Release) {
				return fmt.Errorf("pod %s runs %s", p.Name, c.Image)
			}
		}
		return checkPodReady(p)
	})
}

// replaceFiles replaces files atomically: the kubelet may read them at any time.
func (n *Node) replaceFiles(files []file) error {
	for _, f := range files {
		next := filepath.Join(n.dir, "next")
		if err := os.WriteFile(next, f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
		if err := os.Rename(next, filepath.Join(n.Root(), f.path)); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	return nil
}

// replacePrograms replaces a hand-made node's programs, in each place that the layout has.
func (u *bringUp) replacePrograms(n *Node) error {
	paths := map[string]string{}
	for _, name := range programs.Kubernetes() {
		paths[name] = u.programs[name]
	}
	if err := n.replacePrograms(paths); err != nil {
		return err
	}
	return replaceProgram(u.programs["kubelet"], filepath.Join(n.Root(), u.layout.kubeletBinary))
}

func (n *Node) replacePrograms(programs map[string]string) error {
	for name, from := range programs {
		if err := replaceProgram(from, n.binary(name)); err != nil {
			return err
		}
	}
	return nil
}

// replaceProgram removes the old program before it installs the new one: both are links to shared
// files.
func replaceProgram(from, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", filepath.Base(path), err)
	}
	if err := linkOrCopy(from, path); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(path), err)
	}
	return nil
}
