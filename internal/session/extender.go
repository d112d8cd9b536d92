package session

import (
	"context"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// Extender is an extender that is about to be deployed.
type Extender struct {
	// Default makes the default scheduler of this node call it.
	Default bool

	s    *Session
	x    extenders.Deployment
	deps deploy.Deps
	node *Node
}

// Extender prepares the deployment of an extender and its wiring into schedulers. branch is the release if no cluster is to
// be asked; then only Plans is possible.
func (s *Session) Extender(ctx context.Context, o extenders.Options, callers []extenders.SchedulerRef, branch string) (*Extender, error) {
	e := &Extender{s: s, x: extenders.Deployment{Options: o, For: callers}}
	var err error
	if branch != "" {
		if e.x.Release, err = s.ResolveBranch(ctx, branch); err == nil && (len(callers) > 0 || o.Sidecar) {
			err = problem.Invalidf("leave --branch out", "wiring extender %s into a scheduler requires a cluster", o.Call.Name)
		}
		return e, err
	}
	if o.Sidecar && len(callers) == 0 {
		return nil, problem.Invalidf("name the scheduler with --for", "extender %s as a sidecar requires a scheduler", o.Call.Name)
	}
	cfg, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	e.deps, e.x.Prove = deps, s.proveExtender(cfg)
	e.x.Release, err = inspect.ServerRelease(cfg)
	return e, err
}

// CallFromNode makes the default scheduler of this node call the extender too. stableFor is how
// long that scheduler must run without a restart. If it is 0, [replace.DefaultStableFor] applies.
func (e *Extender) CallFromNode(ctx context.Context, node string, stableFor time.Duration) error {
	n, name, err := e.s.nodeScheduler(ctx, node, stableFor)
	if err != nil {
		return err
	}
	owned, err := e.deps.Applier.Owned(ctx, e.x.Options.Call.Name, e.x.Options.Namespace)
	if err != nil {
		return err
	}
	before := slices.Contains(extenders.NodesCalling(owned), name)
	e.node, e.x.Options.Nodes = n, []string{name}
	e.x.Then = func(ctx context.Context, w manifest.Wiring) error { return e.callFromNode(ctx, w, before) }
	return nil
}

// Plans returns the plans of the extender and of the schedulers that call it.
func (e *Extender) Plans(ctx context.Context) ([]*deploy.Plan, error) {
	plans, _, err := extenders.Plan(ctx, e.deps, e.x)
	for _, plan := range plans {
		e.s.report(plan)
	}
	return plans, err
}

// DryRun checks everything and returns the changes that Deploy would make. node is nil unless the
// default scheduler would call the extender.
func (e *Extender) DryRun(ctx context.Context) (changes apply.ChangeSet, node *replace.Plan, err error) {
	plans, wiring, err := extenders.Plan(ctx, e.deps, e.x)
	if err != nil {
		return nil, nil, err
	}
	if changes, err = extenders.DryRun(ctx, e.deps, plans); err != nil || e.node == nil {
		return changes, nil, err
	}
	node, err = replace.DryRunExtender(ctx, e.node.deps, e.node.info, e.node.o, wiring(""))
	return changes, node, err
}

// Deploy deploys the extender and wires it.
func (e *Extender) Deploy(ctx context.Context, how deploy.RunOptions) (*extenders.Outcome, error) {
	e.x.RunOptions = how
	return extenders.Deploy(ctx, e.deps, e.x)
}

// RestartExtender rolls out new pods of an extender.
func (s *Session) RestartExtender(ctx context.Context, o extenders.RestartOptions) (*extenders.Outcome, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	o.Now = time.Now()
	return extenders.Restart(ctx, deps, o)
}

// UninstallExtender removes an extender from every scheduler that calls it, the default one of this node included, and
// deletes its objects.
func (s *Session) UninstallExtender(ctx context.Context, o extenders.UninstallOptions, node string) (apply.ChangeSet, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	owned, err := deps.Applier.Owned(ctx, o.Name, o.Namespace)
	if err != nil {
		return nil, err
	}
	if len(extenders.NodesCalling(owned)) > 0 {
		n, name, err := s.nodeScheduler(ctx, node, o.StableFor)
		if err != nil {
			return nil, err
		}
		o.Node, o.LeaveDefault = name, func(ctx context.Context, addresses []string) error {
			return replace.LeaveExtender(ctx, n.deps, n.info, n.o, o.Name, addresses)
		}
	}
	return extenders.Uninstall(ctx, deps, o)
}

// nodeScheduler inspects this node, whose default scheduler is a static pod, and returns its name.
func (s *Session) nodeScheduler(ctx context.Context, node string, stableFor time.Duration) (*Node, string, error) {
	n := &Node{o: replace.Options{Node: node, Names: inspect.MachineNames(), Timeout: replace.DefaultTimeout, StableFor: stableFor}}
	if err := s.inspectNode(ctx, n); err != nil {
		return nil, "", err
	}
	if _, err := replace.FindLayout(n.info.Layout); err != nil {
		return nil, "", err
	}
	name, err := replace.FindNode(n.info, n.o.Node, n.o.Names)
	return n, name, err
}
