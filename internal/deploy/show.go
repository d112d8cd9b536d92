package deploy

import (
	"bytes"
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
	if err := compareContents(changes, plan.Objects, installed); err != nil {
		return nil, err
	}
	for _, o := range without(parts(installed), plan.Objects) {
		if !isConfiguration(o) {
			changes = append(changes, apply.Change{Object: objectName(o), Action: apply.Deleted})
		}
	}
	return changes, nil
}

// compareContents replaces the diffs of ConfigMaps, whose names change with their contents, by the
// diffs from the ConfigMaps that the installed Deployment uses.
func compareContents(changes apply.ChangeSet, wanted, installed []*unstructured.Unstructured) error {
	for _, o := range wanted {
		former := formerConfigMap(o, installed)
		at := slices.IndexFunc(changes, func(c apply.Change) bool { return c.Object == objectName(o) })
		if former == nil || at < 0 {
			continue
		}
		text, err := apply.Diff(former, o)
		if err != nil {
			return err
		}
		changes[at].Diff = text
	}
	return nil
}

// formerConfigMap returns the ConfigMap that the installed Deployment uses in place of o, or nil if
// o is no ConfigMap or the same one.
func formerConfigMap(o *unstructured.Unstructured, installed []*unstructured.Unstructured) *unstructured.Unstructured {
	if o.GetKind() != "ConfigMap" {
		return nil
	}
	for _, live := range installed {
		if live.GetKind() == "ConfigMap" && live.GetName() != o.GetName() && live.GetNamespace() == o.GetNamespace() &&
			stem(live.GetName()) == stem(o.GetName()) && usesConfigMap(installed, live.GetName()) {
			return live
		}
	}
	return nil
}

// stem returns a name without the hash of the contents.
func stem(name string) string { return name[:max(0, strings.LastIndexByte(name, '-'))] }

// usesConfigMap reports whether a Deployment names a ConfigMap, in a volume or in a flag.
func usesConfigMap(objects []*unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		text, err := o.MarshalJSON()
		return o.GetKind() == "Deployment" && err == nil && bytes.Contains(text, []byte(name))
	})
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
