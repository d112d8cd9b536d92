package extenders

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// UninstallOptions says which extender goes.
type UninstallOptions struct {
	Name, Namespace string
	// Node is this node's name, and Default makes its default scheduler as it was before it called the extender at that address; both are
	// needed only where it does.
	Node    string
	Default func(ctx context.Context, addresses []string) error
	install.DeployOptions
}

// Uninstall takes an extender out of the configuration of every scheduler that calls it, and then removes all of its objects. It can be
// run again after it was stopped at any point. Where the default schedulers of several nodes call it, it has to be run on each; the
// objects go with the last.
func Uninstall(ctx context.Context, d install.Deps, x UninstallOptions) (apply.ChangeSet, error) {
	if err := manifest.ValidateName(x.Name); err != nil {
		return nil, err
	}
	owned, err := d.Applier.Owned(ctx, x.Name, x.Namespace)
	if err != nil {
		return nil, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
	}
	if app := install.AppOf(owned); app != "" && app != ownership.Extender {
		return nil, problem.Invalidf("`pmk-sched uninstall` removes schedulers", "%s is a scheduler, no extender", x.Name)
	}
	if in := install.NamespacesOf(owned); len(in) > 0 && !slices.Contains(in, x.Namespace) {
		return nil, problem.Invalidf("say -n "+in[0], "extender %s is in namespace %s, not in %s", x.Name, in[0], x.Namespace)
	}
	changes, err := unwireAll(ctx, d, x)
	if err != nil {
		return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
	}
	if nodes := NodesCalling(owned); len(nodes) > 0 {
		left, err := x.leaveNode(ctx, nodes, owned)
		if err != nil {
			return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
		}
		if len(left) > 0 {
			return changes, fmt.Errorf("uninstall extender %s: %w", x.Name, stillCalled(ctx, d, x, left))
		}
	}
	removed, err := install.Uninstall(ctx, d, x.Namespace, x.Name)
	return append(changes, removed...), err
}

// unwireAll deploys every scheduler that calls the extender without it.
func unwireAll(ctx context.Context, d install.Deps, x UninstallOptions) (apply.ChangeSet, error) {
	calling, err := callers(ctx, d, x.Name)
	if err != nil {
		return nil, err
	}
	var changes apply.ChangeSet
	for _, target := range sortedRefs(calling) {
		last, err := lastOf(ctx, d, target)
		if err != nil {
			return changes, err
		}
		plan, err := install.Rewire(last, nil, []string{x.Name})
		if err != nil {
			return changes, err
		}
		outcome, err := install.Deploy(ctx, d, plan, x.DeployOptions)
		if err != nil {
			return changes, err
		}
		changes = append(changes, outcome.Changes...)
	}
	return changes, nil
}

func sortedRefs(m map[SchedulerRef]manifest.Wiring) []SchedulerRef {
	return slices.SortedFunc(maps.Keys(m), func(a, b SchedulerRef) int { return strings.Compare(a.String(), b.String()) })
}

// leaveNode makes this node's default scheduler what it was, and returns the nodes whose still calls.
func (x UninstallOptions) leaveNode(ctx context.Context, nodes []string, owned []*unstructured.Unstructured) ([]string, error) {
	left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == x.Node })
	if len(left) == len(nodes) {
		return left, nil
	}
	if x.Default == nil {
		return nil, problem.Invalidf("run it there, as root", "the default scheduler of node %s calls it", x.Node)
	}
	var at []string
	for _, o := range owned {
		if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); o.GetKind() == "Service" {
			at = append(at, "https://"+bracketed(ip), "https://"+manifest.ExtenderHost(x.Name, x.Namespace))
		}
	}
	return left, x.Default(ctx, at)
}

// stillCalled notes which nodes are left, and says what to do.
func stillCalled(ctx context.Context, d install.Deps, x UninstallOptions, left []string) error {
	last, err := lastOf(ctx, d, SchedulerRef{x.Namespace, x.Name})
	if err != nil {
		return err
	}
	plan, err := install.PlanOf(last)
	if err != nil {
		return err
	}
	plan.Objects = changed(plan.Objects, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[manifest.AnnotationNodes] = strings.Join(left, ",")
		o.SetAnnotations(annotations)
	})
	if _, err := install.Deploy(ctx, d, plan, x.DeployOptions); err != nil {
		return err
	}
	return problem.Errorf("run the same there, as root; with the last one its objects go", "the default scheduler calls it on %s", strings.Join(left, ", "))
}
