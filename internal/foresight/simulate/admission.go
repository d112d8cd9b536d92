package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// readClasses reads the snapshot's classes and the namespaces with budgets, unless they are known
// from a step before, and adds the scenario's classes.
func (o *Options) readClasses() error {
	if o.classes == nil {
		o.classes, o.budgeted = load.NewClasses(), map[string]bool{}
		if err := o.readSnapshot(); err != nil {
			return err
		}
	}
	for _, added := range o.Scenario.Objects {
		o.findBudgets(added.Kind, added.Fields)
		if err := o.classes.Add(added.Kind, added.Fields); err != nil {
			return err
		}
	}
	o.admits = o.admits || o.AdmitsMore || len(o.Scenario.Workloads) > 0
	return nil
}

// readSnapshot reads the snapshot's classes, and the namespaces with budgets. It returns an error
// if the snapshot lacks a node that the scenario names, before an API server is started.
func (o *Options) readSnapshot() error {
	if o.Snapshot == nil {
		return nil
	}
	nodes := map[string]bool{}
	err := o.Snapshot.Each(func(kind *snapshot.Kind, _ string, object map[string]any) error {
		if kind.Name == "Node" {
			_, name := scenario.NameOf(object)
			nodes[name] = true
		}
		admitted := kind.Name == "Pod" || kind.Name == "PersistentVolumeClaim"
		o.admits = o.admits || admitted && !scenario.IsCreated(kind, object)
		o.findBudgets(kind, object)
		return o.classes.Add(kind, object)
	})
	return errors.Join(err, requireNodes(o.Scenario, nodes))
}

func requireNodes(s scenario.Scenario, exist map[string]bool) error {
	for _, node := range s.Nodes {
		if !exist[node] {
			return problem.Invalidf("", "the snapshot has no node %s", node)
		}
	}
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

// Admit returns a snapshot's object with the API server's defaults and admission changes, unless an
// API server has created it. refused is the reason why it would not be created.
func (r *Run) Admit(
	ctx context.Context, kind *snapshot.Kind, version string, o map[string]any,
) (_ map[string]any, refused string, err error) {
	if scenario.IsCreated(kind, o) {
		return o, "", nil
	}
	if !scenario.HasPriority(o) {
		return r.create(ctx, kind, version, o)
	}
	// A pod that is described with its priority was created before, with the classes at that time.
	answer, err := r.Loader.Admit(ctx, kind, version, scenario.WithoutPriority(o))
	var refusal *load.RefusedError
	switch {
	case errors.As(err, &refusal):
		return scenario.MarkCreated(o), "", nil
	case err != nil:
		return nil, "", invalid(err)
	}
	return scenario.Admitted(kind, o, answer), "", nil
}

// create returns an object from a manifest as the API server creates it, or the reason why it does
// not.
func (r *Run) create(
	ctx context.Context, kind *snapshot.Kind, version string, o map[string]any,
) (_ map[string]any, refused string, err error) {
	if err := scenario.CheckClasses(o, r.Options.classes.Has); err != nil {
		return nil, "", err
	}
	answer, err := r.Loader.Admit(ctx, kind, version, o)
	var refusal *load.RefusedError
	switch {
	case errors.As(err, &refusal):
		return scenario.MarkCreated(o), refusal.Reason, nil
	case err != nil:
		return nil, "", invalid(err)
	}
	return scenario.Admitted(kind, o, answer), "", nil
}

// invalid returns an error about the user's input if the API server says that an object is invalid.
func invalid(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return problem.Invalidf("", "%w", err)
	}
	return err
}

// createOther creates an object that is not a pod. One that admission refuses is left out, with a
// note: a claim, whose pods then wait.
func (r *Run) createOther(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	err := r.Loader.Create(ctx, kind, version, o)
	var refusal *load.RefusedError
	if errors.As(err, &refusal) {
		key, _ := kind.Key(o)
		r.note("%s %s is not created: %s", kind.Name, key, refusal.Reason)
		return nil
	}
	return invalid(err)
}

// refuse reports a pod that the API server would not create.
func (r *Run) refuse(pod map[string]any, reason string) {
	r.Report.Unplaced = append(r.Report.Unplaced, refusal(pod, reason))
}

func refusal(pod map[string]any, reason string) report.Unplaced {
	namespace, name := scenario.NameOf(pod)
	return report.Unplaced{Namespace: namespace, Name: name, Reason: "not created: " + reason}
}

// noteQuotas names the quotas in the added pods' namespaces, and namespaces that the snapshot does
// not have: the cluster's API server may refuse the pods.
func (r *Run) noteQuotas() {
	quotas, missing := map[string]bool{}, map[string]bool{}
	for i := range r.Options.Scenario.Workloads {
		namespace := r.Options.Scenario.Workloads[i].Namespace
		for _, quota := range r.quotas[namespace] {
			quotas[quota] = true
		}
		if len(r.namespaces) > 0 && !r.namespaces[namespace] {
			missing[namespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(missing)) {
		r.note("the snapshot has no namespace %s: pods are added to one without labels and limits", namespace)
	}
	for _, quota := range slices.Sorted(maps.Keys(quotas)) {
		r.note("ResourceQuota %s is not applied: the API server of the cluster refuses pods that exceed it", quota)
	}
}

// admissionNotes returns notes about classes that a cluster's snapshot does not have, for admitting
// added pods.
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
