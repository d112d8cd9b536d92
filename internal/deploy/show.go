package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Description returns a line for the history: release, image, configuration and credentials.
func (p *Plan) Description() string {
	if p.Extender != nil {
		return describeExtender(p.Extender)
	}
	return fmt.Sprintf("%s, image %s, configuration %s, credentials %s",
		p.Release, p.Scheduler.Image, p.Scheduler.Configuration.APIVersion, p.Scheduler.Credentials.Mode) +
		describeWirings(p.Scheduler.Wirings)
}

// Command returns the command line for the plan's scheduler or extender.
func (p *Plan) Command(verb string) string {
	words := "pmk-sched "
	if p.Namespace != metav1.NamespaceSystem {
		words += "-n " + p.Namespace + " "
	}
	if p.Extender != nil {
		words += "extender "
	}
	return words + verb + " --name " + p.Name
}

// Render returns the objects in the plan and in the plans in Before as YAML documents. Secret
// values are omitted unless secrets is set.
func Render(plan *Plan, secrets bool) ([]byte, error) {
	var objects []*unstructured.Unstructured
	for _, before := range plan.Before {
		objects = append(objects, before.Objects...)
	}
	return manifest.YAML(append(objects, plan.Objects...), manifest.RenderOptions{ShowSecrets: secrets})
}

// Diff returns Deploy's changes according to a dry run on the API server, and the objects that it
// would delete. For a scheduler that Helm installed, it returns the changes that `helm upgrade`
// makes with the plan's chart.
func Diff(ctx context.Context, d Deps, plan *Plan) (apply.ChangeSet, error) {
	installed, err := d.Cluster.ByHelm(ctx, plan.Name, plan.Namespace)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the cluster: %w", plan.Name, err)
	}
	if len(installed) == 0 {
		return diff(ctx, d, plan)
	}
	chart, _, err := chartPlan(plan)
	if err != nil {
		return nil, err
	}
	if d.Note != nil {
		d.Note(
			fmt.Sprintf(
				"Helm installed scheduler %s: the cluster is compared with the chart that `pmk-sched render chart` writes",
				plan.Name))
	}
	objects := slices.DeleteFunc(slices.Clone(chart.Objects),
		func(o *unstructured.Unstructured) bool { return o.GetKind() == "Secret" })
	return compare(ctx, &Plan{Name: plan.Name, Namespace: plan.Namespace, Objects: objects}, installed, d.Cluster.PlanHelm)
}

func diff(ctx context.Context, d Deps, plan *Plan) (apply.ChangeSet, error) {
	var before apply.ChangeSet
	for _, p := range plan.Before {
		changes, err := diff(ctx, d, p)
		if err != nil {
			return nil, err
		}
		before = append(before, changes...)
	}
	owned, err := d.Cluster.Owned(ctx, plan.Name, plan.Namespace)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the cluster: %w", plan.Name, err)
	}
	changes, err := compare(ctx, plan, owned, d.Cluster.Plan)
	return append(before, changes...), err
}

// compare returns a plan's changes, including deletions of installed objects that the plan does not
// have.
func compare(ctx context.Context, plan *Plan, installed []*unstructured.Unstructured,
	changesOf func(context.Context, []*unstructured.Unstructured) (apply.ChangeSet, error)) (apply.ChangeSet, error) {
	if err := onlyIn(plan.Namespace, plan.Name, installed); err != nil {
		return nil, err
	}
	changes, err := changesOf(ctx, plan.Objects)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the cluster: %w", plan.Name, err)
	}
	for _, o := range without(parts(installed), plan.Objects) {
		if !isConfiguration(o) {
			changes = append(changes, apply.Change{Object: objectName(o), Action: apply.Deleted})
		}
	}
	return changes, nil
}

// DryRun makes the same checks as Deploy, and returns the changes that Deploy would make.
func DryRun(ctx context.Context, d Deps, plan *Plan) (apply.ChangeSet, error) {
	var changes apply.ChangeSet
	run := &deployRun{Deps: d, plan: plan}
	err := steps.Run(ctx, []steps.Step{
		{Name: "preflight checks", Do: run.preflight},
		{Name: "check configuration", Do: run.checkConfiguration},
		{Name: "compare", Do: func(ctx context.Context) (err error) {
			changes, err = diff(ctx, d, plan)
			return err
		}},
	}, d.OnStep)
	if err != nil {
		return nil, fmt.Errorf("dry run of %s: %w", plan.Name, err)
	}
	return changes, nil
}

// RenderPreset returns a preset's configuration for a scheduler with that name, in the form for the
// release.
func RenderPreset(preset, name string, release versions.Release) ([]byte, error) {
	rendered, err := profiles.Render(profiles.Request{
		Release: release, SchedulerName: name, Kubeconfig: manifest.KubeconfigPath(name), LeaderElect: true, Preset: preset,
	})
	if err != nil {
		return nil, err
	}
	return rendered.YAML, nil
}

// describeExtender describes an extender in a line, for the history.
func describeExtender(e *manifest.Extender) string {
	var names []string
	for _, p := range e.Policies {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("extender, image %s, policies %s", e.Image, strings.Join(names, ", "))
}
