package deploy

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Rewire returns the plan of a deployed revision of a scheduler with other extenders: those of set are added or replace those of the same
// name, and those named in drop are removed. Nothing else changes.
func Rewire(revision *apply.Revision, set []manifest.Wiring, drop []string) (*Plan, error) {
	before, err := manifest.Wirings(revision.Objects)
	if err != nil {
		return nil, err
	}
	kept, gone := split(before, func(w manifest.Wiring) bool {
		named := func(other manifest.Wiring) bool { return other.Extender.Name == w.Extender.Name }
		return !slices.Contains(drop, w.Extender.Name) && !slices.ContainsFunc(set, named)
	})
	wirings := slices.Concat(kept, set)
	port, err := manifest.SecurePort(revision.Objects)
	if err != nil {
		return nil, err
	}
	if err := placeSidecars(wirings, port); err != nil {
		return nil, err
	}
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	if manifest.ReadsPolicy(revision.Objects) {
		return nil, problem.Invalidf("add the extender to spec.extenders of its file, and deploy that", "scheduler %s reads a Policy, in which a single extender cannot be changed", revision.Name)
	}
	base, err := manifest.Configuration(revision.Objects, revision.Name)
	if err != nil {
		return nil, err
	}
	text, notes, err := profiles.SetExtenders(base, plan.Release, addresses(slices.Concat(gone, kept)), calls(wirings))
	if err != nil {
		return nil, fmt.Errorf("configure scheduler %s: %w", revision.Name, err)
	}
	for _, n := range notes {
		plan.Warnings = append(plan.Warnings, n.Message)
	}
	if len(set) > 0 {
		unbatched, err := profiles.FindUnbatched(text, plan.Release, nil, inspect.FeatureGates(manifest.Command(revision.Objects)))
		if err != nil {
			return nil, err
		}
		for _, u := range unbatched {
			plan.Notes = append(plan.Notes, u.String())
		}
	}
	bare, _, _ := strings.Cut(plan.Again, describedExtenders)
	plan.Again = bare + describeWirings(wirings)
	plan.Scheduler.Configuration = &profiles.Rendered{YAML: text}
	plan.Objects, err = manifest.Wire(revision.Objects, text, wirings)
	return plan, err
}

// describedExtenders begins the part of a description that lists extenders.
const describedExtenders = ", extenders "

func describeWirings(wirings []manifest.Wiring) string {
	if len(wirings) == 0 {
		return ""
	}
	var names []string
	for _, w := range wirings {
		names = append(names, w.Extender.Name)
	}
	return describedExtenders + strings.Join(names, ", ")
}

// PlanOf returns the plan that deploys the objects of a revision again.
func PlanOf(revision *apply.Revision) (*Plan, error) {
	plan := &Plan{Name: revision.Name, Namespace: revision.Namespace, Objects: revision.Objects, TakenPorts: map[int]string{}}
	plan.Again = revision.Description
	for _, o := range revision.Objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			return nil, fmt.Errorf("read revision %d of %s: %w", revision.Number, revision.Name, err)
		}
		if len(d.Spec.Template.Spec.Containers) > 0 {
			plan.Scheduler.Image = d.Spec.Template.Spec.Containers[0].Image
		}
		plan.Scheduler.Name, plan.Scheduler.Namespace = plan.Name, plan.Namespace
		if o.GetLabels()[ownership.LabelName] == ownership.Extender {
			plan.Extender = &manifest.Extender{Name: plan.Name, Namespace: plan.Namespace, Image: plan.Scheduler.Image}
			return plan, nil
		}
		var err error
		plan.Release, err = versions.Parse(o.GetLabels()[ownership.LabelRelease])
		plan.Scheduler.Release = plan.Release
		return plan, err
	}
	return nil, fmt.Errorf("revision %d of %s has no Deployment", revision.Number, revision.Name)
}

// placeSidecars gives each sidecar without a port one next to the scheduler's.
func placeSidecars(wirings []manifest.Wiring, secure int) error {
	taken := map[int32]bool{}
	for _, w := range wirings {
		if w.Sidecar != nil {
			taken[w.Sidecar.Port] = true
		}
	}
	for i := range wirings {
		if wirings[i].Sidecar == nil {
			continue
		}
		placed := *wirings[i].Sidecar
		for n := 0; placed.Port == 0; n++ {
			port, err := manifest.SidecarPort(secure, n)
			if err != nil {
				return err
			}
			if !taken[port] {
				placed.Port, taken[port] = port, true
			}
		}
		wirings[i].Sidecar, wirings[i].Extender.URLPrefix = &placed, manifest.SidecarURL(placed.Port)
	}
	return nil
}

func split(all []manifest.Wiring, keep func(manifest.Wiring) bool) (kept, gone []manifest.Wiring) {
	for _, w := range all {
		if keep(w) {
			kept = append(kept, w)
		} else {
			gone = append(gone, w)
		}
	}
	return kept, gone
}

func calls(wirings []manifest.Wiring) []profiles.Extender {
	var list []profiles.Extender
	for _, w := range wirings {
		list = append(list, w.Extender)
	}
	return list
}

func addresses(wirings []manifest.Wiring) []string {
	var list []string
	for _, w := range wirings {
		list = append(list, w.Extender.URLPrefix)
	}
	return list
}

// placeExtenders chooses the ports of sidecars. A Policy is rendered with the extenders.
func (p *planner) placeExtenders() error {
	p.o.Wirings = slices.Clone(p.o.Wirings)
	if err := placeSidecars(p.o.Wirings, p.plan.Scheduler.Port); err != nil {
		return err
	}
	for _, w := range p.o.Wirings {
		where := "at " + w.Extender.URLPrefix
		if w.Sidecar != nil {
			where = "as a sidecar " + where
		}
		p.note("extender %s %s", w.Extender.Name, where)
	}
	if p.o.PolicyConfigMap {
		p.o.Extenders = slices.Concat(p.o.Extenders, calls(p.o.Wirings))
	}
	return nil
}

// configureExtenders adds the extenders to the configuration as `extender deploy` does, so that both give the same scheduler.
func (p *planner) configureExtenders() error {
	if len(p.o.Wirings) == 0 || p.o.PolicyConfigMap {
		return nil
	}
	rendered := *p.plan.Scheduler.Configuration
	text, notes, err := profiles.SetExtenders(rendered.YAML, p.plan.Release, nil, calls(p.o.Wirings))
	if err != nil {
		return err
	}
	for _, n := range notes {
		p.warn("%s", n.Message)
	}
	rendered.YAML = text
	p.plan.Scheduler.Configuration = &rendered
	return nil
}

// wireObjects adds the extenders to the rendered objects.
func (p *planner) wireObjects() (err error) {
	if len(p.o.Wirings) > 0 {
		p.plan.Objects, err = manifest.Wire(p.plan.Objects, nil, p.o.Wirings)
	}
	return err
}
