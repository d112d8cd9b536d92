package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
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
	ctx context.Context, s *session.Session, p simulate.Programs, o simulate.Options, w *Workload,
) (sample *Sample, notes []string, err error) {
	dir, remove, err := safeio.MakeTemp("bench")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o.Scheduler, o.Scenario, o.Dir = p.Scheduler, scenario.Running(), dir
	o.AdmitsMore, o.GCPercent = true, serverGCPercent
	server, err := simulate.StartServer(ctx, s, p, &o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	m := &measurement{}
	if err := s.Step("create the nodes", func() error { return m.load(ctx, server, o, w.Objects) }); err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if sample, err = m.measure(bounded, w.Measured); err != nil {
		return nil, nil, err
	}
	return sample, m.Scheduler.Notes, nil
}

// measurement measures a scheduler in one run.
type measurement struct {
	*simulate.Run
	// nodes is the number of nodes.
	nodes int
}

// load loads the snapshot, and creates namespaces and nodes.
func (m *measurement) load(
	ctx context.Context, server *simulate.Server, o simulate.Options, objects []map[string]any,
) (err error) {
	if m.Run, err = server.Load(ctx, o); err != nil {
		return err
	}
	m.nodes = m.NodeCount()
	kinds := snapshot.Kinds()
	for _, o := range objects {
		apiVersion, _ := o["apiVersion"].(string)
		name, _ := o["kind"].(string)
		kind, version := snapshot.Find(kinds, apiVersion, name)
		if kind == nil {
			return problem.Invalidf("use v1 Node and Namespace", "cannot create %s %s", apiVersion, name)
		}
		if kind.Name == "Node" {
			m.nodes++
		}
		if err := m.Loader.Add(ctx, kind, version, o); err != nil {
			return err
		}
	}
	return m.Loader.Wait(ctx)
}

// createPods creates pods for the scheduler, several at the same time.
func (m *measurement) createPods(ctx context.Context, all []map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	for _, pod := range all {
		pod, refused, err := m.Admit(ctx, pods, version, pod)
		switch {
		case err != nil:
			return err
		case refused != "":
			namespace, name := scenario.NameOf(pod)
			return problem.Invalidf("", "pod %s/%s: the API server refuses it: %s", namespace, name, refused)
		}
		scenario.UseProfile(pod, nil, m.Options.Scheduler.Request.Name)
		if err := m.Loader.Add(ctx, pods, version, pod); err != nil {
			return err
		}
	}
	return m.Loader.Wait(ctx)
}

// measure creates pods, and runs the scheduler until it has decided about all of them.
func (m *measurement) measure(ctx context.Context, pods []map[string]any) (sample *Sample, err error) {
	err = m.Session.Step("create "+plural.Count(len(pods), "pod"), func() error { return m.createPods(ctx, pods) })
	if err != nil {
		return nil, err
	}
	err = m.Session.Step("schedule "+plural.Count(len(pods), "pod"), func() (err error) {
		sample, err = m.scheduleAll(ctx, pods)
		return err
	})
	return sample, err
}

// scheduleAll runs the scheduler.
func (m *measurement) scheduleAll(ctx context.Context, pods []map[string]any) (sample *Sample, err error) {
	binds := newBinds(pods)
	actors := kubelet.Options{Log: m.Session.Log, Bound: binds.note}
	err = m.WithScheduler(ctx, actors, func() error {
		if err := m.Scheduler.AwaitDecisions(ctx, len(pods)); err != nil {
			return err
		}
		text, err := m.Scheduler.Metrics(ctx)
		if err != nil {
			return fmt.Errorf("read metrics of the scheduler: %w", err)
		}
		sample = &Sample{Bound: binds.times(), Pods: len(pods), Nodes: m.nodes, Metrics: text}
		return nil
	})
	return sample, err
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
