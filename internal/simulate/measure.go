package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/simulate/act"
	"github.com/pmk-sched/pmk-sched/internal/simulate/bench"
	"github.com/pmk-sched/pmk-sched/internal/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/snapshot"
)

// serverGCPercent leaves more of the processors to the scheduler that is measured.
const serverGCPercent = 400

// Measure measures how fast a scheduler binds the pods of a workload. All of them exist before the scheduler starts, so that its own speed is seen and not
// that of creating them. The API server is new, so that no measurement depends on those before.
func Measure(ctx context.Context, o Options, w *bench.Workload) (sample *bench.Sample, err error) {
	o.Scenario = scenario.Running()
	server, err := startServer(ctx, o, serverGCPercent)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r := server.newRun(o, nil)
	if err := r.step("create the nodes", func() error { return r.createObjects(ctx, w.Objects) }); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	if len(w.Before) > 0 {
		if _, err := r.measure(bounded, w.Before); err != nil {
			return nil, err
		}
	}
	return r.measure(bounded, w.Measured)
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
	return r.loader.Wait()
}

// createPods creates pods for the scheduler, several at the same time.
func (r *run) createPods(ctx context.Context, all []map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	for _, pod := range all {
		if err := r.priorities.Set(pod); err != nil {
			return err
		}
		scenario.UseProfile(pod, nil, r.o.Scheduler.Name)
		if err := r.loader.Add(ctx, pods, version, pod); err != nil {
			return err
		}
	}
	return r.loader.Wait()
}

// measure creates pods, and runs the scheduler until it has decided about all of them.
func (r *run) measure(ctx context.Context, pods []map[string]any) (sample *bench.Sample, err error) {
	err = r.step(fmt.Sprintf("create %d pods", len(pods)), func() error { return r.createPods(ctx, pods) })
	if err != nil {
		return nil, err
	}
	err = r.step(fmt.Sprintf("schedule %d pods", len(pods)), func() (err error) {
		sample, err = r.scheduleAll(ctx, pods)
		return err
	})
	return sample, err
}

// scheduleAll runs the scheduler.
func (r *run) scheduleAll(ctx context.Context, pods []map[string]any) (sample *bench.Sample, err error) {
	actors, stopActors := context.WithCancel(ctx)
	defer stopActors()
	wait, err := act.Start(actors, r.server.Config(), r.o.Log)
	if err != nil {
		return nil, err
	}
	defer func() {
		stopActors()
		wait()
	}()
	binds, err := r.watchBinds(actors, pods)
	if err != nil {
		return nil, err
	}
	defer func() {
		stopActors()
		binds.wait()
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
	bound, err := binds.times()
	return &bench.Sample{Bound: bound, Pods: len(pods), Nodes: r.usage.Nodes + r.addedNodes, Metrics: text}, err
}

// binds are the times at which waiting pods were bound.
type binds struct {
	waits map[string]bool // by namespace/name
	done  chan struct{}

	mu    sync.Mutex
	bound map[string]time.Time
	err   error
}

// watchBinds notes when pods are bound, until ctx ends.
func (r *run) watchBinds(ctx context.Context, waiting []map[string]any) (*binds, error) {
	client, err := metadata.NewForConfig(r.server.Config())
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", r.server.Config().Host, err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	now, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, kubeapi.Explain("list pods", err)
	}
	b := &binds{waits: map[string]bool{}, done: make(chan struct{}), bound: map[string]time.Time{}}
	for _, pod := range waiting {
		namespace, name := scenario.NameOf(pod)
		b.waits[namespace+"/"+name] = true
	}
	events, err := watchBound(ctx, pods, now.ResourceVersion)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(b.done)
		for version := now.ResourceVersion; err == nil && ctx.Err() == nil; {
			if version, err = b.follow(ctx, events, version); err == nil {
				events, err = watchBound(ctx, pods, version)
			}
		}
		if ctx.Err() == nil {
			b.mu.Lock()
			b.err = err
			b.mu.Unlock()
		}
	}()
	return b, nil
}

func watchBound(ctx context.Context, pods metadata.Getter, version string) (watch.Interface, error) {
	events, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=", ResourceVersion: version})
	if err != nil {
		return nil, kubeapi.Explain("watch pods", err)
	}
	return events, nil
}

// follow notes the first event of each pod until ctx or the watch ends, and returns the version of the last event. The API server ends a watch whose reader does not
// keep up, for example because other programs use the processors.
func (b *binds) follow(ctx context.Context, events watch.Interface, version string) (string, error) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, ok := <-events.ResultChan():
			if !ok {
				return version, nil
			}
			now := time.Now()
			pod, isPod := event.Object.(*metav1.PartialObjectMetadata)
			if !isPod {
				return version, kubeapi.Explain("watch pods", apierrors.FromObject(event.Object))
			}
			version = pod.ResourceVersion
			b.note(event.Type, pod.Namespace+"/"+pod.Name, now)
		}
	}
}

func (b *binds) note(change watch.EventType, pod string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, again := b.bound[pod]; b.waits[pod] && change != watch.Deleted && !again {
		b.bound[pod] = now
	}
}

func (b *binds) wait() { <-b.done }

// times returns when pods were bound so far.
func (b *binds) times() ([]time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []time.Time
	for _, t := range b.bound {
		all = append(all, t)
	}
	return all, b.err
}
