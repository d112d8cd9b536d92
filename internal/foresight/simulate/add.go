package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// loadCopies creates the scenario's copies of snapshot objects.
func (r *Run) loadCopies(ctx context.Context) error {
	if r.Options.Scenario.Copies == nil {
		return nil
	}
	copies, notes := r.Options.Scenario.Copies(r.templates)
	r.Report.Notes = append(r.Report.Notes, notes...)
	for _, c := range copies {
		switch c.Kind.Name {
		case "Node":
			r.addedNodes++
		case "Pod":
			r.addedPods++
			c.Fields = scenario.MarkCreated(c.Fields)
		}
		if err := r.Loader.Add(ctx, c.Kind, c.Version, c.Fields); err != nil {
			return err
		}
	}
	return r.Loader.Wait(ctx)
}

// loadAdded creates the objects that the scenario adds, and enqueues its workloads' pods.
func (r *Run) loadAdded(ctx context.Context) error {
	if err := r.loadCopies(ctx); err != nil {
		return err
	}
	for _, o := range slices.Concat(r.Options.external, r.Options.Scenario.Objects) {
		if o.Kind.External {
			r.addCustom(o.Kind, o.Fields)
			continue
		}
		key, err := o.Kind.Key(o.Fields)
		if err != nil {
			return problem.Invalidf("", "%w", err)
		}
		switch o.Kind.Name {
		case "Node":
			if r.nodes[key] {
				return problem.Invalidf("use another metadata.name", "the snapshot has a node %s", key)
			}
			r.addedNodes++
		case "Namespace":
			r.namespaces[key] = true
		case "ResourceQuota":
			namespace, _ := scenario.NameOf(o.Fields)
			r.quotas[namespace] = append(r.quotas[namespace], key)
		}
		r.devices.add(o.Kind, key, o.Fields, scenario.Keep)
		if err := r.budgets.add(o.Kind, o.Version, o.Fields); err != nil {
			return err
		}
		if err := r.createOther(ctx, o.Kind, o.Version, o.Fields); err != nil {
			return err
		}
	}
	for i := range r.Options.Scenario.Workloads {
		if err := r.devices.templates.Check(&r.Options.Scenario.Workloads[i]); err != nil {
			return err
		}
	}
	number := 0
	for index := range r.Options.Scenario.Count {
		for _, replica := range r.nextCopy() {
			refused, err := r.prepare(ctx, &replica)
			if err != nil {
				return err
			}
			number++
			r.copies[replica.Key] = index
			if refused != "" {
				r.refuse(replica.Pod, refused)
				continue
			}
			if err := r.wait(replica.Key, fmt.Sprintf("%09d", number), replica.Pod, replica.Owned); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextCopy returns the pods in all workloads' next copy.
func (r *Run) nextCopy() []scenario.Replica {
	var all []scenario.Replica
	for i := range r.Options.Scenario.Workloads {
		var replicas []scenario.Replica
		replicas, r.next[i] = r.Options.Scenario.Workloads[i].Copy(r.next[i],
			func(key string) bool { return r.pods[key] }, r.devices.templates)
		all = append(all, replicas...)
	}
	return all
}

// prepare makes a pod as the API server creates it, and creates its claims. refused is the reason
// why the API server would not create the pod or a claim.
func (r *Run) prepare(ctx context.Context, replica *scenario.Replica) (refused string, err error) {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	if replica.Pod, refused, err = r.create(ctx, pods, version, replica.Pod); err != nil || refused != "" {
		return refused, err
	}
	for _, claim := range replica.Claims {
		err := r.Loader.Create(ctx, claim.Kind, claim.Version, claim.Fields)
		var refusal *load.RefusedError
		switch {
		case errors.As(err, &refusal):
			return refusal.Reason, nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}
