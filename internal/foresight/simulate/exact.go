package simulate

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// ExplainRequest describes the pod to explain and the scheduler that explains it.
type ExplainRequest struct {
	Input
	Namespace, Pod string
	// Node is explained in addition; it may be empty.
	Node string
}

// Explain runs the scheduler on a snapshot and reports its decision about each node for a pod. The
// cluster is only read, and not at all if a file is given.
func Explain(ctx context.Context, s *session.Session, r ExplainRequest) (result *decision.Result, err error) {
	snap, err := capture.Open(ctx, s, r.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p, err := Compile(ctx, s, r.Scheduler, snap.Header)
	if err != nil {
		return nil, err
	}
	dir, remove, err := safeio.MakeTemp("explain")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o := Options{Scheduler: p.Scheduler, Snapshot: snap, Dir: dir, Timeout: r.Timeout}
	var fixes []decision.Fix
	if r.Node != "" {
		o.After = func(ctx context.Context, cfg *rest.Config) (err error) {
			fixes, err = findFixes(ctx, s, cfg, r)
			return err
		}
	}
	if err := o.readClasses(); err != nil {
		return nil, err
	}
	server, err := startServer(ctx, s, p, dir, o.firstClasses(), 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	in, err := server.Explain(ctx, o, r.Namespace, r.Pod)
	if err != nil {
		return nil, err
	}
	if r.Node != "" && !slices.Contains(in.Nodes, r.Node) {
		return nil, problem.Invalidf("`kubectl get nodes` lists nodes", "the snapshot has no node %s", r.Node)
	}
	result = decision.New(*in, r.Node)
	if c := result.Chosen; c != nil && c.Outcome == decision.Refused {
		c.Fixes = fixes
	}
	return result, nil
}

// findFixes returns changes that would make the pod fit on the node, computed from the simulation's
// objects.
func findFixes(ctx context.Context, s *session.Session, cfg *rest.Config, r ExplainRequest) ([]decision.Fix, error) {
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
