package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// serverGCPercent leaves more processor time to the scheduler that is measured.
const serverGCPercent = 400

// measure measures how fast a scheduler binds a workload's pods. All pods exist before the
// scheduler starts, so that the time to create them does not matter. The API server is new, so that
// no measurement depends on earlier ones.
func measure(
	ctx context.Context, s *session.Session, p Programs, o Options, w *bench.Workload,
) (sample *bench.Sample, notes []string, err error) {
	dir, remove, err := safeio.MakeTemp("bench")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o.Scheduler, o.Scenario, o.Dir = p.Scheduler, scenario.Running(), dir
	o.admits = true // the pods of the workload
	if err := o.readClasses(); err != nil {
		return nil, nil, err
	}
	server, err := startServer(ctx, s, p, dir, o.firstClasses(), serverGCPercent)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r := server.newRun(o, nil)
	if err := r.s.Step("create the nodes", func() error { return r.createObjects(ctx, w.Objects) }); err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	if len(w.Before) > 0 {
		if _, err := r.measure(bounded, w.Before); err != nil {
			return nil, nil, err
		}
	}
	sample, err = r.measure(bounded, w.Measured)
	return sample, r.notes, err
}

// createObjects loads the snapshot, and creates namespaces and nodes.
func (r *run) createObjects(ctx context.Context, objects []map[string]any) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	kinds := snapshot.Kinds()
	for _, o := range objects {
		apiVersion, _ := o["apiVersion"].(string)
		name, _ := o["kind"].(string)
		kind, version := snapshot.Find(kinds, apiVersion, name)
		if kind == nil {
			return problem.Invalidf("use v1 Node and Namespace", "cannot create %s %s", apiVersion, name)
		}
		if kind.Name == "Node" {
			r.addedNodes++
		}
		if err := r.loader.Add(ctx, kind, version, o); err != nil {
			return err
		}
	}
	return r.loader.Wait(ctx)
}

// createPods creates pods for the scheduler, several at the same time.
func (r *run) createPods(ctx context.Context, all []map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	for _, pod := range all {
		pod, refused, err := r.admit(ctx, pods, version, pod) // scheduler_perf describes priorities
		switch {
		case err != nil:
			return err
		case refused != "":
			namespace, name := scenario.NameOf(pod)
			return problem.Invalidf("", "pod %s/%s: the API server refuses it: %s", namespace, name, refused)
		}
		scenario.UseProfile(pod, nil, r.o.Scheduler.Request.Name)
		if err := r.loader.Add(ctx, pods, version, pod); err != nil {
			return err
		}
	}
	return r.loader.Wait(ctx)
}

// measure creates pods, and runs the scheduler until it has decided about all of them.
func (r *run) measure(ctx context.Context, pods []map[string]any) (sample *bench.Sample, err error) {
	err = r.s.Step(fmt.Sprintf("create %d pods", len(pods)), func() error { return r.createPods(ctx, pods) })
	if err != nil {
		return nil, err
	}
	err = r.s.Step(fmt.Sprintf("schedule %d pods", len(pods)), func() (err error) {
		sample, err = r.scheduleAll(ctx, pods)
		return err
	})
	return sample, err
}

// scheduleAll runs the scheduler.
func (r *run) scheduleAll(ctx context.Context, pods []map[string]any) (sample *bench.Sample, err error) {
	actors, stopActors := context.WithCancel(ctx)
	defer stopActors()
	binds := newBinds(pods)
	wait, err := kubelet.Start(actors, r.server.Config(), kubelet.Options{Log: r.s.Log, Bound: binds.note})
	if err != nil {
		return nil, err
	}
	defer func() {
		stopActors()
		wait()
	}()
	s, err := r.startScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.awaitDecisions(ctx, len(pods)); err != nil {
		return nil, err
	}
	text, err := s.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics of the scheduler: %w", err)
	}
	return &bench.Sample{Bound: binds.times(), Pods: len(pods), Nodes: r.usage.Nodes + r.addedNodes, Metrics: text}, nil
}

// binds are the times at which waiting pods were bound.
type binds struct {
	mu    sync.Mutex
	waits map[string]bool // by namespace/name
	bound []time.Time
}

func newBinds(waiting []map[string]any) *binds {
	b := &binds{waits: map[string]bool{}}
	for _, pod := range waiting {
		namespace, name := scenario.NameOf(pod)
		b.waits[namespace+"/"+name] = true
	}
	return b
}

// note notes that a pod is bound, if it waits.
func (b *binds) note(namespace, name string) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := namespace + "/" + name; b.waits[key] {
		delete(b.waits, key)
		b.bound = append(b.bound, now)
	}
}

// times returns when pods were bound so far.
func (b *binds) times() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bound)
}
