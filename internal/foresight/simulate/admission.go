package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// readClasses reads the classes of the snapshot and the namespaces with budgets, unless they are
// known from a step before, and adds those of the scenario.
func (o *Options) readClasses() error {
	if o.classes == nil {
		o.classes, o.budgeted = load.NewClasses(), map[string]bool{}
		err := o.Snapshot.Each(func(kind *snapshot.Kind, _ string, object map[string]any) error {
			admitted := kind.Name == "Pod" || kind.Name == "PersistentVolumeClaim"
			o.admits = o.admits || admitted && !scenario.IsCreated(kind, object)
			o.findBudgets(kind, object)
			return o.classes.Add(kind, object)
		})
		if err != nil {
			return err
		}
	}
	for _, added := range o.Scenario.Objects {
		o.findBudgets(added.Kind, added.Fields)
		if err := o.classes.Add(added.Kind, added.Fields); err != nil {
			return err
		}
	}
	o.admits = o.admits || len(o.Scenario.Workloads) > 0
	return nil
}

func (o *Options) findBudgets(kind *snapshot.Kind, object map[string]any) {
	if kind.Name == "PodDisruptionBudget" {
		namespace, _ := scenario.NameOf(object)
		o.budgeted[namespace] = true
	}
}

// firstClasses are the classes with which an API server for the run has to be started.
func (o *Options) firstClasses() *load.Classes {
	if !o.admits {
		return load.NewClasses()
	}
	return o.classes
}

// admit returns an object of the snapshot with the defaults of the API server and the changes of
// its admission, unless an API server has created it. refused is the reason why it would not be
// created.
func (r *run) admit(
	ctx context.Context, kind *snapshot.Kind, version string, o map[string]any,
) (_ map[string]any, refused string, err error) {
	if scenario.IsCreated(kind, o) {
		return o, "", nil
	}
	if !scenario.HasPriority(o) {
		return r.create(ctx, kind, version, o)
	}
	// A pod that is described with its priority was created before, with the classes of that time.
	answer, err := r.loader.Admit(ctx, kind, version, scenario.WithoutPriority(o))
	var refusal *load.RefusedError
	switch {
	case errors.As(err, &refusal):
		return scenario.MarkCreated(o), "", nil
	case err != nil:
		return nil, "", err
	}
	return scenario.Admitted(kind, o, answer), "", nil
}

// create returns an object of a manifest as the API server creates it, or the reason why it does
// not.
func (r *run) create(
	ctx context.Context, kind *snapshot.Kind, version string, o map[string]any,
) (_ map[string]any, refused string, err error) {
	if err := scenario.CheckClasses(o, r.o.classes.Has); err != nil {
		return nil, "", err
	}
	answer, err := r.loader.Admit(ctx, kind, version, o)
	var refusal *load.RefusedError
	switch {
	case errors.As(err, &refusal):
		return scenario.MarkCreated(o), refusal.Reason, nil
	case err != nil:
		return nil, "", err
	}
	return scenario.Admitted(kind, o, answer), "", nil
}

// refuse reports a pod that the API server would not create.
func (r *run) refuse(pod map[string]any, reason string) {
	r.report.Unplaced = append(r.report.Unplaced, refusal(pod, reason))
}

func refusal(pod map[string]any, reason string) report.Unplaced {
	namespace, name := scenario.NameOf(pod)
	return report.Unplaced{Namespace: namespace, Name: name, Reason: "not created: " + reason}
}

// noteQuotas names the quotas of the namespaces of added pods: a quota that is used up has pods
// refused in the cluster.
func (r *run) noteQuotas() {
	quotas := map[string]bool{}
	for i := range r.o.Scenario.Workloads {
		for _, quota := range r.quotas[r.o.Scenario.Workloads[i].Namespace] {
			quotas[quota] = true
		}
	}
	for _, quota := range slices.Sorted(maps.Keys(quotas)) {
		r.note("ResourceQuota %s is not applied: the API server of the cluster refuses pods that exceed it", quota)
	}
}

// admissionNotes returns notes about classes that a snapshot of a cluster does not have, for the
// admission of added pods.
func admissionNotes(h *snapshot.Header) []string {
	if h.Source != snapshot.FromCluster {
		return nil
	}
	var notes []string
	for resource, effect := range map[string]string{
		"limitranges":                       "requests and limits that they set",
		"runtimeclasses.node.k8s.io":        "the overhead and the nodes of their RuntimeClass",
		"resourcequotas":                    "",
		"priorityclasses.scheduling.k8s.io": "the priority of a default class",
		"storageclasses.storage.k8s.io":     "the default StorageClass",
	} {
		if slices.ContainsFunc(h.Resources, func(r snapshot.Resource) bool { return r.GroupResource() == resource }) {
			continue
		}
		reason := fmt.Sprintf("pmk-sched %s did not read them", h.CreatedBy)
		for _, skipped := range h.Skipped {
			if skipped.Resource == resource {
				reason = skipped.Reason
			}
		}
		note := fmt.Sprintf("the snapshot has no %s: %s", resource, reason)
		if effect != "" {
			note += "; added pods do not get " + effect
		}
		notes = append(notes, note)
	}
	slices.Sort(notes)
	return notes
}
