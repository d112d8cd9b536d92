package decision

import (
	"context"
	"errors"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Request describes the pod to explain and the scheduler that explains it.
type Request struct {
	simulate.Input
	Namespace, Pod string
	// Node is explained in addition; it may be empty.
	Node string
	// Described is set if the user described the scheduler. Otherwise it is the default one, and a pod
	// that names another one is refused.
	Described bool
}

// Run runs the scheduler on a snapshot and reports its decision about each node for a pod. The
// cluster is only read, and not at all if a file is given.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	snap, err := capture.Open(ctx, s, r.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p, err := simulate.Compile(ctx, s, r.Scheduler, snap.Header)
	if err != nil {
		return nil, err
	}
	dir, remove, err := safeio.MakeTemp("explain")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o := simulate.Options{Scheduler: p.Scheduler, Snapshot: snap, Dir: dir, Timeout: r.Timeout}
	server, err := simulate.StartServer(ctx, s, p, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	in, err := Observe(ctx, server, o, r.Namespace, r.Pod, r.Node, r.Described)
	if err != nil {
		return nil, err
	}
	if r.Node != "" && !slices.Contains(in.Nodes, r.Node) {
		return nil, problem.Invalidf("`kubectl get nodes` lists nodes", "the snapshot has no node %s", r.Node)
	}
	return New(*in, r.Node), nil
}
