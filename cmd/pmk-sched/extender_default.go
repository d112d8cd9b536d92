package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// nodeScheduler is the default scheduler of this node, a static pod.
type nodeScheduler struct {
	name string // of the node
	u    *ui
	deps replace.Deps
	info *cluster.Info
	o    replace.Options
}

// newNodeScheduler finds it, and what is known of the plugins in its image: its configuration may name them.
func newNodeScheduler(c *cli.Context, u *ui) (*nodeScheduler, error) {
	cfg, err := connect(c, u)
	if err != nil {
		return nil, err
	}
	d, err := newReplaceDeps(c, u, cfg)
	if err != nil {
		return nil, err
	}
	info, err := detect(c, u, cfg, "", "", nil)
	if err != nil {
		return nil, unfinished(d, err)
	}
	if _, err := replace.FindLayout(info.Layout); err != nil {
		return nil, err
	}
	n := &nodeScheduler{u: u, deps: d, info: info, o: replace.Options{
		Node: c.String("node"), Names: ownNames(), Timeout: replace.DefaultTimeout, StableFor: replace.DefaultStableFor,
	}}
	n.name, err = replace.FindNode(info, n.o.Node, n.o.Names)
	return n, err
}

// call makes it call an extender.
func (n *nodeScheduler) call(ctx context.Context, w manifest.Wiring) error {
	return replace.CallExtender(ctx, n.deps, n.info, n.o, w)
}

// leave makes it what it was before it called an extender.
func (n *nodeScheduler) leave(extender string) func(ctx context.Context, addresses []string) error {
	return func(ctx context.Context, addresses []string) error {
		return replace.LeaveExtender(ctx, n.deps, n.info, n.o, extender, addresses)
	}
}

// show prints how its manifest would change.
func (n *nodeScheduler) show(ctx context.Context, w manifest.Wiring) error {
	r, err := replace.DryRunExtender(ctx, n.deps, n.info, n.o, w)
	if err != nil {
		return err
	}
	return writeDiff(n.u.out, r)
}

// serverVersion asks the API server for its version, v1.24.3 or v1.24.3+k3s1.
func serverVersion(cfg *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", kubeapi.Explain("ask the API server for its version", err)
	}
	return version.GitVersion, nil
}
