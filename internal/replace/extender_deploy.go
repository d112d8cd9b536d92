package replace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

// Extender is an extender that is about to be deployed.
type Extender struct {
	s    *session.Session
	x    extenders.Deployment
	deps deploy.Deps
	// node is set if its default scheduler is to call the extender.
	node *Node
}

// NewExtender prepares an extender's deployment and its wiring into schedulers.
func NewExtender(
	ctx context.Context, s *session.Session, o extenders.Options, callers []extenders.SchedulerRef,
) (_ *Extender, err error) {
	e := &Extender{s: s}
	e.deps, e.x, err = lifecycle.PrepareExtender(ctx, s, o, callers, "")
	return e, err
}

// CallFromNode makes this node's default scheduler call the extender too. stableFor is the time
// that this scheduler must run without a restart. If it is 0, [DefaultStableFor] applies.
func (e *Extender) CallFromNode(ctx context.Context, node string, stableFor time.Duration) error {
	n, name, err := findNode(ctx, e.s, node, stableFor)
	if err != nil {
		return err
	}
	owned, err := e.deps.Cluster.Owned(ctx, e.x.Options.Name, e.x.Options.Namespace)
	if err != nil {
		return err
	}
	if e.x.Options.Image, err = n.signedForNode(ctx, e.x.Options.Image); err != nil {
		return err
	}
	before := slices.Contains(extenders.NodesCalling(owned), name)
	e.node, e.x.Options.Nodes = n, []string{name}
	e.x.Then = func(ctx context.Context, entry v1alpha1.Extender) error { return e.callFromNode(ctx, entry, before) }
	return nil
}

// callFromNode makes the node's default scheduler call the extender, and proves it. If the
// scheduler does not reach the extender, it works without it again, unless it called the extender
// before.
func (e *Extender) callFromNode(ctx context.Context, entry v1alpha1.Extender, before bool) error {
	n := e.node
	w, err := deploy.WiringOf(entry)
	if err != nil {
		return err
	}
	if _, err := Run(ctx, n.deps, n.info, n.o.withExtender(entry)); err != nil {
		return err
	}
	if others := len(n.info.ControlPlane.Nodes) - 1; others > 0 {
		e.s.Warn(fmt.Sprintf("whether the default scheduler reaches extender %s is not proven: "+
			"the one of another of the %d control-plane nodes may lead", w.Extender.Name, others+1))
		return nil
	}
	self := extenders.SchedulerRef{Namespace: metav1.NamespaceSystem, Name: corev1.DefaultSchedulerName}
	err = extenders.Prove(ctx, e.deps, self, w, cmp.Or(e.x.Options.Namespace, metav1.NamespaceSystem))
	if err == nil || before {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.o.Timeout)
	defer cancel()
	if undo := LeaveExtender(ctx, n.deps, n.info, n.o, entry.Name); undo != nil {
		err = errors.Join(err, fmt.Errorf("%w: %w", steps.ErrUndo, undo))
	}
	return err
}

// DryRun checks everything and returns the changes that Deploy would make. node is nil unless the
// default scheduler would call the extender.
func (e *Extender) DryRun(ctx context.Context) (changes apply.ChangeSet, node *Plan, err error) {
	plans, entry, err := extenders.Plan(ctx, e.deps, e.x)
	if err != nil {
		return nil, nil, err
	}
	if changes, err = extenders.DryRun(ctx, e.deps, plans); err != nil || e.node == nil {
		return changes, nil, err
	}
	node, err = DryRun(ctx, e.node.deps, e.node.info, e.node.o.withExtender(entry))
	return changes, node, err
}

// Deploy deploys the extender and wires it.
func (e *Extender) Deploy(ctx context.Context, how deploy.RunOptions) (*extenders.Outcome, error) {
	e.x.RunOptions = how
	return extenders.Deploy(ctx, e.deps, e.x)
}

// UninstallExtender removes an extender from every scheduler that calls it, this node's default
// scheduler included, and deletes its objects.
func UninstallExtender(
	ctx context.Context, s *session.Session, o extenders.UninstallOptions, node string,
) (apply.ChangeSet, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	owned, err := d.Cluster.Owned(ctx, o.Name, o.Namespace)
	if err != nil {
		return nil, err
	}
	if len(extenders.NodesCalling(owned)) > 0 {
		n, name, err := findNode(ctx, s, node, o.StableFor)
		if err != nil {
			return nil, err
		}
		o.Node, o.LeaveDefault = name, func(ctx context.Context) error {
			return LeaveExtender(ctx, n.deps, n.info, n.o, o.Name)
		}
	}
	return extenders.Uninstall(ctx, d, o)
}

// findNode inspects this node, whose default scheduler is a static pod, and returns its name.
func findNode(ctx context.Context, s *session.Session, node string, stableFor time.Duration) (*Node, string, error) {
	n := &Node{s: s, o: Options{
		Node: node, Names: inspect.MachineNames(), Timeout: DefaultTimeout, StableFor: stableFor,
	}}
	if err := n.inspect(ctx); err != nil {
		return nil, "", err
	}
	if _, err := FindLayout(n.info); err != nil {
		return nil, "", err
	}
	name, err := FindNode(n.info, n.o.Node, n.o.Names)
	return n, name, err
}
