package deploy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/render"
)

// Chart returns the files for a Helm chart that installs the plan's objects, and warnings. A chart
// holds no node credentials: the scheduler uses its ServiceAccount, or a Secret that a value names.
// Other keys are left out unless secrets is set.
func Chart(plan *Plan, secrets bool) (files map[string][]byte, warnings []string, err error) {
	in, warnings, err := chartInput(plan, secrets)
	if err != nil {
		return nil, nil, err
	}
	files, err = render.Chart(in)
	return files, warnings, err
}

// ReleasesChart returns the files for one Helm chart from a scheduler's plans for several releases,
// as [Chart] does for one. The chart selects the release by the API server's version.
func ReleasesChart(plans []*Plan, secrets bool) (files map[string][]byte, warnings []string, err error) {
	list, warnings, err := releaseInputs(plans, secrets)
	if err != nil {
		return nil, nil, err
	}
	files, err = render.ReleasesChart(list)
	return files, warnings, err
}

// ReleasesKustomize returns the files for a Kustomize base and one component per minor, from the
// same plans as [ReleasesChart]. A minor's component has its newest patch.
func ReleasesKustomize(plans []*Plan, secrets bool) (files map[string][]byte, warnings []string, err error) {
	list, warnings, err := releaseInputs(plans, secrets)
	if err != nil {
		return nil, nil, err
	}
	files, err = render.Kustomize(list)
	return files, warnings, err
}

// releaseInputs returns the chart inputs from plans, by ascending release, and warnings.
func releaseInputs(plans []*Plan, secrets bool) (list []render.Input, warnings []string, err error) {
	plans = slices.SortedFunc(slices.Values(plans), func(a, b *Plan) int { return a.Release.Compare(b.Release) })
	for _, plan := range plans {
		in, warned, err := chartInput(plan, secrets)
		if err != nil {
			return nil, nil, fmt.Errorf("release %s: %w", plan.Release, err)
		}
		list, warnings = append(list, in), append(warnings, warned...)
	}
	slices.Sort(warnings)
	return list, slices.Compact(warnings), nil
}

// chartInput returns the chart input from a plan, and warnings.
func chartInput(plan *Plan, secrets bool) (in render.Input, warnings []string, err error) {
	plan, warnings, err = chartPlan(plan)
	if err != nil {
		return in, nil, err
	}
	objects, err := shown(plan.Objects, secrets)
	if err != nil {
		return in, nil, fmt.Errorf("write a chart of scheduler %s: %w", plan.Name, err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		if secrets || o.GetKind() != "Secret" {
			return false
		}
		warnings = append(warnings,
			fmt.Sprintf("Secret %s is left out: create it before you install the scheduler, or use --show-secrets", o.GetName()))
		return true
	})
	s := plan.Scheduler
	return render.Input{
		Name: plan.Name, Namespace: plan.Namespace, Release: plan.Release, NodeSelector: s.NodeSelector,
		Architectures: s.Architectures, AuthenticationReader: !s.NoAuthenticationReader,
		Objects:   objects,
		APIServer: cmp.Or(s.Credentials.Server, manifest.InClusterServer),
	}, warnings, nil
}

// chartPlan returns the plan for the objects that a chart installs, without node credentials, and
// warnings.
func chartPlan(plan *Plan) (_ *Plan, warnings []string, err error) {
	if len(plan.Before) > 0 {
		return nil, nil, problem.Invalidf("deploy it with `pmk-sched extender deploy` and call it at its Service",
			"write a chart of scheduler %s: a chart cannot hold extender %s, whose certificates pmk-sched makes and renews",
			plan.Name, plan.Before[0].Name)
	}
	mode := plan.Scheduler.Credentials.Mode
	if mode == CredentialsServiceAccount {
		return plan, nil, nil
	}
	if plan.Request == nil { // the plan of a revision
		return nil, nil, problem.Invalidf(deployAgain,
			"write a chart of scheduler %s: its revision does not record its request", plan.Name)
	}
	request := plan.Request.DeepCopy()
	request.Spec.Credentials = CredentialsServiceAccount
	name := plan.Name
	if plan, err = NewPlan(request, plan.from); err != nil {
		return nil, nil, fmt.Errorf("write a chart of scheduler %s: %w", name, err)
	}
	note := fmt.Sprintf("the chart uses ServiceAccount credentials instead of %s: a chart holds no credentials of a node; "+
		"to use a client certificate, set credentials.secret to the name of an existing Secret", mode)
	return plan, []string{note}, nil
}

// shown returns objects as Render prints them.
func shown(objects []*unstructured.Unstructured, secrets bool) ([]*unstructured.Unstructured, error) {
	text, err := manifest.YAML(objects, manifest.RenderOptions{ShowSecrets: secrets})
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		data, err := sigsyaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}
