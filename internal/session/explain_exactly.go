package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// ExplainRequest describes the pod to explain and the scheduler that explains it.
type ExplainRequest struct {
	Namespace, Pod string
	// Node is explained in addition; it may be empty.
	Node      string
	Scheduler pack.Scheduler
	// Snapshot is the path of a snapshot. If it is empty, a snapshot of the cluster is taken.
	Snapshot string
	// Timeout bounds the time that the scheduler gets.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// ExplainExactly runs the scheduler on a snapshot and reports its decision about each node for a
// pod. The cluster is only read, and not at all if a file is given.
func (s *Session) ExplainExactly(ctx context.Context, r ExplainRequest) (result *decision.Result, err error) {
	err = s.withSnapshot(ctx, r.Snapshot, r.Version, func(h *snapshot.Header, objects simulate.Snapshot) (err error) {
		sim := simulation{s: s, objects: objects, header: h, request: SimulateRequest{Timeout: r.Timeout}}
		o, err := sim.options(ctx, r.Scheduler)
		if err != nil {
			return err
		}
		dir, remove, err := tempdir.Make("explain")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
		o.Snapshot, o.Dir = objects, dir
		var fixes []decision.Fix
		if r.Node != "" {
			o.After = func(ctx context.Context, cfg *rest.Config) (err error) {
				fixes, err = s.fixes(ctx, cfg, r)
				return err
			}
		}
		in, err := simulate.Explain(ctx, o, r.Namespace, r.Pod)
		if err != nil {
			return err
		}
		if r.Node != "" && !slices.Contains(in.Nodes, r.Node) {
			return problem.Invalidf("`kubectl get nodes` lists nodes", "the snapshot has no node %s", r.Node)
		}
		result = decision.New(*in, r.Node)
		if c := result.Chosen; c != nil && c.Outcome == decision.Refused {
			c.Fixes = fixes
		}
		return nil
	})
	return result, err
}

// fixes returns changes that would make the pod fit on the node, computed from the objects of the
// simulation.
func (s *Session) fixes(ctx context.Context, cfg *rest.Config, r ExplainRequest) ([]decision.Fix, error) {
	in, err := collect.Pod(ctx, cfg, r.Namespace, r.Pod, s.Log)
	if err != nil || in.Pod == nil {
		return nil, err
	}
	var fixes []decision.Fix
	for _, f := range explain.Node(*in, r.Node) {
		fixes = append(fixes, decision.Fix{By: f.By, Text: f.Text, Fix: f.Fix})
	}
	return fixes, nil
}
