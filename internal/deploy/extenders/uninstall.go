package extenders

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// UninstallOptions describe the extender to uninstall.
type UninstallOptions struct {
	Name, Namespace string
	// Node is this node's name. LeaveDefault removes the extender from its default scheduler. Both are
	// required only if that scheduler calls the extender.
	Node         string
	LeaveDefault func(ctx context.Context) error
	// RunOptions for each scheduler that calls the extender. Timeout, if it is set, also limits the
	// time to remove the extender.
	deploy.RunOptions
}

// Uninstall removes an extender from the configuration of every scheduler that calls it, then its
// objects. It can be run again after it was killed at any point. If the default schedulers of
// several nodes call it, it must be run on each of them; the last run removes the objects.
func Uninstall(ctx context.Context, d deploy.Deps, x UninstallOptions) (apply.ChangeSet, error) {
	if err := manifest.ValidateName(x.Name); err != nil {
		return nil, err
	}
	owned, err := d.Cluster.Owned(ctx, x.Name, x.Namespace)
	if err != nil {
		return nil, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
	}
	if app := deploy.AppOf(owned); app != "" && app != ownership.Extender {
		return nil, problem.Invalidf("remove it with `pmk-sched uninstall`", "%s is a scheduler, not an extender", x.Name)
	}
	if in := deploy.NamespacesOf(owned); len(in) > 0 && !slices.Contains(in, x.Namespace) {
		return nil, problem.Invalidf("use -n "+in[0], "extender %s is in namespace %s, not in %s", x.Name, in[0], x.Namespace)
	}
	changes, err := unwireAll(ctx, d, x)
	if err != nil {
		return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
	}
	if nodes := NodesCalling(owned); len(nodes) > 0 {
		left, err := x.leaveDefault(ctx, nodes)
		if err != nil {
			return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
		}
		if len(left) > 0 {
			return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, stillCalled(ctx, d, x, left))
		}
	}
	if x.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.Timeout)
		defer cancel()
	}
	removed, err := deploy.Uninstall(ctx, d, x.Namespace, x.Name)
	return append(changes, removed...), err
}

// unwireAll deploys every scheduler that calls the extender without it.
func unwireAll(ctx context.Context, d deploy.Deps, x UninstallOptions) (apply.ChangeSet, error) {
	calling, err := callers(ctx, d, x.Namespace, x.Name)
	if err != nil {
		return nil, err
	}
	var changes apply.ChangeSet
	for _, target := range sortedRefs(calling) {
		last, err := lastOf(ctx, d, target)
		if err != nil {
			return changes, err
		}
		plan, err := deploy.PlanOf(last)
		if err != nil {
			return changes, err
		}
		if err := plan.SetExtenders(nil, x.Name); err != nil {
			return changes, err
		}
		outcome, err := deploy.Deploy(ctx, d, plan, x.RunOptions)
		if err != nil {
			return changes, err
		}
		changes = append(changes, outcome.Changes...)
	}
	return changes, nil
}

func sortedRefs(m map[SchedulerRef]v1alpha1.Extender) []SchedulerRef {
	return slices.SortedFunc(maps.Keys(m), func(a, b SchedulerRef) int { return strings.Compare(a.String(), b.String()) })
}

// leaveDefault removes the extender from this node's default scheduler, and returns the nodes whose
// default scheduler still calls it.
func (x UninstallOptions) leaveDefault(ctx context.Context, nodes []string) ([]string, error) {
	left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == x.Node })
	if len(left) == len(nodes) {
		return left, nil
	}
	if x.LeaveDefault == nil {
		return nil, problem.Invalidf("run the command on that node, as root", "the default scheduler of node %s calls it",
			x.Node)
	}
	return left, x.LeaveDefault(ctx)
}

// stillCalled records the remaining nodes, and returns the error that lists them.
func stillCalled(ctx context.Context, d deploy.Deps, x UninstallOptions, left []string) error {
	last, err := lastOf(ctx, d, SchedulerRef{x.Namespace, x.Name})
	if err != nil {
		return err
	}
	plan, err := deploy.PlanOf(last)
	if err != nil {
		return err
	}
	if plan.Extender == nil {
		return problem.Invalidf("", "%s is a scheduler, not an extender", x.Name)
	}
	plan.Extender.Nodes = left
	if err := plan.Render(); err != nil {
		return err
	}
	if _, err := deploy.Deploy(ctx, d, plan, x.RunOptions); err != nil {
		return err
	}
	return problem.Errorf("run the same command on those nodes, as root; the last run removes the objects",
		"the default scheduler calls it on %s", strings.Join(left, ", "))
}
