package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

// ExtenderRemoval says which extender goes.
type ExtenderRemoval struct {
	Name, Namespace string
	// Node is this node's name, and Default makes its default scheduler as it was before it called the extender at that address; both are
	// needed only where it does.
	Node    string
	Default func(ctx context.Context, addresses []string) error
	DeployOptions
}

// UninstallExtender takes an extender out of the configuration of every scheduler that calls it, and then removes all of its objects. It can be
// run again after it was stopped at any point. Where the default schedulers of several nodes call it, it has to be run on each; the
// objects go with the last.
func UninstallExtender(ctx context.Context, d Deps, x ExtenderRemoval) (apply.ChangeSet, error) {
	if err := manifest.ValidateName(x.Name); err != nil {
		return nil, err
	}
	owned, err := d.Applier.Owned(ctx, x.Name, x.Namespace)
	if err != nil {
		return nil, fmt.Errorf("uninstall extender %s: %w", x.Name, err)
	}
	if app := appOf(owned); app != "" && app != manifest.ExtenderAppName {
		return nil, invalidf("`pmk-sched uninstall` removes schedulers", "%s is a scheduler, no extender", x.Name)
	}
	if in := homes(owned); len(in) > 0 && !slices.Contains(in, x.Namespace) {
		return nil, invalidf("say -n "+in[0], "extender %s is in namespace %s, not in %s", x.Name, in[0], x.Namespace)
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
	removed, err := Uninstall(ctx, d, x.Namespace, x.Name)
	return append(changes, removed...), err
}

// unwireAll deploys every scheduler that calls the extender without it.
func unwireAll(ctx context.Context, d Deps, x ExtenderRemoval) (apply.ChangeSet, error) {
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
		plan, err := wirePlan(last, nil, []string{x.Name})
		if err != nil {
			return changes, err
		}
		outcome, err := Deploy(ctx, d, plan, x.DeployOptions)
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
func (x ExtenderRemoval) leaveNode(ctx context.Context, nodes []string, owned []*unstructured.Unstructured) ([]string, error) {
	left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == x.Node })
	if len(left) == len(nodes) {
		return left, nil
	}
	if x.Default == nil {
		return nil, invalidf("run it there, as root", "the default scheduler of node %s calls it", x.Node)
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
func stillCalled(ctx context.Context, d Deps, x ExtenderRemoval, left []string) error {
	last, err := lastOf(ctx, d, SchedulerRef{x.Namespace, x.Name})
	if err != nil {
		return err
	}
	plan, err := planOf(last)
	if err != nil {
		return err
	}
	plan.Objects = changed(plan.Objects, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[manifest.AnnotationNodes] = strings.Join(left, ",")
		o.SetAnnotations(annotations)
	})
	if _, err := Deploy(ctx, d, plan, x.DeployOptions); err != nil {
		return err
	}
	return &Error{
		Err: fmt.Errorf("the default scheduler calls it on %s", strings.Join(left, ", ")),
		Try: "run the same there, as root; with the last one its objects go",
	}
}

// changed returns copies of the objects, with the Deployment changed.
func changed(objects []*unstructured.Unstructured, change func(o *unstructured.Unstructured)) []*unstructured.Unstructured {
	fresh := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		fresh[i] = o.DeepCopy()
		if o.GetKind() == "Deployment" {
			change(fresh[i])
		}
	}
	return fresh
}

// ExtenderRestart says how an extender is restarted.
type ExtenderRestart struct {
	Name, Namespace string
	// Image to go on with; empty: the one that it has, in new pods.
	Image string
	Now   time.Time
	DeployOptions
}

// annotationRestarted makes a pod template another one.
const annotationRestarted = "pmk-sched.io/restarted"

// RestartExtender rolls out an extender: in its own pods, and in those of the schedulers that have it as a sidecar. It waits until they are steady;
// one that does not become so is rolled back.
func RestartExtender(ctx context.Context, d Deps, x ExtenderRestart) (*ExtenderOutcome, error) {
	out := &ExtenderOutcome{Extender: x.Name, Schedulers: []string{}}
	calling, err := callers(ctx, d, x.Name)
	if err != nil {
		return nil, fmt.Errorf("restart extender %s: %w", x.Name, err)
	}
	var plans []*Plan
	for _, ref := range sortedRefs(calling) {
		out.Address = calling[ref].Extender.URLPrefix
		if calling[ref].Sidecar == nil {
			continue
		}
		last, err := lastOf(ctx, d, ref)
		if err != nil {
			return nil, err
		}
		w := calling[ref]
		sidecar := *w.Sidecar
		if x.Image != "" {
			sidecar.Image = x.Image
		}
		w.Sidecar = &sidecar
		plan, err := wirePlan(last, []manifest.Wiring{w}, nil)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
		out.Schedulers = append(out.Schedulers, ref.String())
	}
	if len(plans) == 0 {
		last, err := lastOf(ctx, d, SchedulerRef{x.Namespace, x.Name})
		if err != nil {
			return nil, invalidf("deploy it first: `pmk-sched extender deploy --name "+x.Name+"`", "there is no extender %s in namespace %s", x.Name, x.Namespace)
		}
		plan, err := planOf(last)
		if err != nil {
			return nil, err
		}
		if plan.Extender == nil {
			return nil, invalidf("", "%s is a scheduler, no extender", x.Name)
		}
		plans = append(plans, plan)
	}
	for _, plan := range plans {
		if err := x.rollOut(ctx, d, plan, out); err != nil {
			return nil, fmt.Errorf("restart extender %s: %w", x.Name, err)
		}
	}
	return out, nil
}

// rollOut makes new pods of one Deployment.
func (x ExtenderRestart) rollOut(ctx context.Context, d Deps, plan *Plan, out *ExtenderOutcome) error {
	var failed error
	plan.Objects = changed(plan.Objects, func(o *unstructured.Unstructured) {
		if plan.Extender != nil && x.Image != "" {
			failed = setImage(o, manifest.ExtenderContainerName, x.Image)
			plan.Extender.Image, plan.Scheduler.Image = x.Image, x.Image
		}
		at := []string{"spec", "template", "metadata", "annotations", annotationRestarted}
		if x.Image == "" && failed == nil {
			failed = unstructured.SetNestedField(o.Object, x.Now.UTC().Format(time.RFC3339), at...)
		}
	})
	if failed != nil {
		return failed
	}
	outcome, err := Deploy(ctx, d, plan, x.DeployOptions)
	if err != nil {
		return err
	}
	out.Changes = append(out.Changes, outcome.Changes...)
	if plan.Extender != nil {
		out.Revision = outcome.Revision
	}
	return nil
}

func setImage(deployment *unstructured.Unstructured, container, image string) error {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return fmt.Errorf("read the containers of Deployment/%s: %w", deployment.GetName(), err)
	}
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == container {
			c["image"] = image
		}
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}
