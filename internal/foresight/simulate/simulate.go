// Package simulate runs a scheduler on a snapshot's pods: it starts a release's API server without
// controllers and kubelets, loads the snapshot, runs the scheduler itself, and reads the pods'
// nodes.
//
// Package scenario decides which pods are scheduled, load creates the objects, kubelet replaces
// kubelets and volume controllers, and report contains the result. [Explain] explains one pod:
// package decision evaluates the scheduler's decision about each node, and recorder observes it.
// [Bench] measures schedulers' speed, which package bench evaluates.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Options are the scheduler, the scenario and the objects for one run.
type Options struct {
	Scheduler Scheduler
	Scenario  scenario.Scenario
	Snapshot  capture.Objects
	// Dir is a private directory for data, keys and logs.
	Dir string
	// Timeout bounds the time that the scheduler gets to decide about all pods.
	Timeout time.Duration
	// Undecided accepts pods without a decision after Timeout: the report notes it. Otherwise it is
	// an error.
	Undecided bool
	// Before is called with the API server when the objects are loaded, before the scheduler
	// starts. It may be nil.
	Before func(ctx context.Context, cfg *rest.Config) error
	// After is called with the API server when the pods are scheduled, before more are tried. It
	// may be nil.
	After func(ctx context.Context, cfg *rest.Config) error
	// classes are the classes in the snapshot and in the scenarios so far, and admits is set if the
	// API server admits pods or claims from manifests.
	classes *load.Classes
	admits  bool
	// budgeted are the namespaces with PodDisruptionBudgets, in the snapshot or the scenarios so far.
	budgeted map[string]bool
	// external are the custom resources in earlier steps' manifests.
	external []scenario.Object
	// then is called with the running scheduler in the end. It may be nil.
	then func(ctx context.Context, r *run, s *scheduler) error
}

// newRun returns a run that has not begun.
func (s *Server) newRun(o Options, observer *observer) *run {
	r := &run{
		o: o, s: s.s, server: s.api, observer: observer, waits: map[string]bool{}, deferred: map[string][]deferredObject{},
		before: map[string]string{}, from: map[string]string{}, nodes: map[string]bool{}, pods: map[string]bool{},
		devices: newDevices(), attachments: scenario.NewAttachments(), moved: map[string]bool{},
		waitingClasses: map[string]bool{},
		budgets:        budgets{namespaces: o.budgeted, replicas: map[string]int{}, owners: map[string]string{}},
		namespaces:     map[string]bool{},
		quotas:         map[string][]string{}, next: make([]int, len(o.Scenario.Workloads)), copies: map[string]int{},
	}
	r.report = &report.Report{Scenario: o.Scenario.Name, Release: o.Scheduler.Release.String(),
		Scheduler: o.Scheduler.Request.Name}
	return r
}

// run is one run of a scenario.
type run struct {
	o        Options
	s        *session.Session
	server   *apiserver.Server
	observer *observer // nil: none
	loader   *load.Loader
	waiting  []scenario.Waiting
	// waits are the keys of the pods in waiting.
	waits map[string]bool
	// deferred are the objects that refer to a pod in waiting, by the pod's UID in the snapshot.
	deferred map[string][]deferredObject
	// moved are the UIDs of the pods that are scheduled again, and waitingClasses the StorageClasses
	// whose volumes wait for a pod.
	moved, waitingClasses map[string]bool
	// before are the nodes of pods that stay bound, and from the former nodes of pods that are
	// scheduled again, by namespace and name.
	before, from map[string]string
	// nodes are the node names, and pods the keys of the snapshot's pods.
	nodes, pods map[string]bool
	// addedNodes and addedPods are the numbers that the scenario adds before the scheduler starts.
	addedNodes, addedPods int
	// left counts the pending pods that the scheduler ignores, and lost counts pods whose nodes do not
	// exist.
	left, lost  int
	attachments *scenario.Attachments
	budgets     budgets
	// custom are the custom resources, and customKinds their kinds.
	custom      []map[string]any
	customKinds []*snapshot.Kind
	namespaces  map[string]bool // of the snapshot
	// quotas are the ResourceQuotas' namespaces and names, by namespace.
	quotas map[string][]string
	// templates are the objects that the scenario copies.
	templates []scenario.Object
	// next is the next pod's number for each workload in the scenario, and copies an added pod's copy
	// number, by namespace and name.
	next    []int
	copies  map[string]int
	devices devices
	usage   report.Usage
	report  *report.Report
	// notes are the scheduler's differences from the one that a deployment runs.
	notes []string
}

func (r *run) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// schedule starts the scheduler, gives it the pods in its queue's order, and waits until it has
// decided about every pod.
func (r *run) schedule(ctx context.Context) (err error) {
	bounded, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	actors, stopActors := context.WithCancel(ctx)
	defer stopActors()
	late := map[string]bool{} // notes; read when the actors have ended
	options := kubelet.Options{Log: r.s.Log, Note: func(text string) { late[text] = true }, Budgets: r.budgets.list()}
	if len(options.Budgets) > 0 {
		budgets, _ := snapshot.Find(snapshot.Kinds(), "policy/v1", "PodDisruptionBudget")
		options.BudgetResource = r.loader.Resource(budgets)
	}
	if len(r.devices.gates) > 0 {
		options.Claims = r.loader.Resource(claimKind())
	}
	wait, err := kubelet.Start(actors, r.server.Config(), options)
	if err != nil {
		return err
	}
	defer func() {
		stopActors()
		wait()
		r.report.Notes = append(r.report.Notes, slices.Sorted(maps.Keys(late))...)
	}()
	s, err := r.startScheduler(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	err = r.s.Step(fmt.Sprintf("schedule %d pods", len(r.waiting)), func() error { return r.decide(bounded, s) })
	if err != nil {
		return err
	}
	if err := r.readResult(ctx); err != nil {
		return err
	}
	if r.o.After != nil {
		if err := r.o.After(ctx, r.server.Config()); err != nil {
			return err
		}
	}
	if r.o.then != nil {
		return r.o.then(bounded, r, s)
	}
	if len(r.o.Scenario.Workloads) == 0 {
		return nil
	}
	return r.s.Step("try more copies", func() error { return r.fill(bounded, s) })
}

// decide gives the waiting pods to the scheduler.
func (r *run) decide(ctx context.Context, s *scheduler) error {
	if err := s.awaitCache(ctx, r.usage.Nodes+r.addedNodes, len(r.before)+r.addedPods); err != nil {
		return err
	}
	if err := r.countImages(ctx, s); err != nil {
		return err
	}
	if r.observer != nil {
		if err := r.observer.probe(ctx, r, s); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := r.createWaiting(ctx, s.profiles); err != nil {
		return err
	}
	if len(r.waiting) == 0 {
		return nil
	}
	err := s.awaitDecisions(ctx, len(r.waiting))
	if err == nil {
		err = r.retryClaiming(ctx, s)
	}
	if r.o.Undecided && errors.Is(err, context.DeadlineExceeded) {
		r.note("after %s the scheduler had not decided about all pods", r.o.Timeout)
		err = nil
	}
	if err != nil {
		return err
	}
	r.report.Summary.ScheduleSeconds = time.Since(begin).Seconds()
	return nil
}

// createWaiting creates the pods to schedule in their order, each followed by the objects that
// refer to it.
func (r *run) createWaiting(ctx context.Context, profiles []string) error {
	others := 0
	for _, w := range r.waiting {
		pod, err := snapshot.Decode(w.Pod)
		if err != nil {
			return fmt.Errorf("read pod %s: %w", w.Key, err)
		}
		if scenario.UseProfile(pod, profiles, r.o.Scheduler.Request.Name) {
			others++
		}
		if err := r.appendPod(ctx, pod, len(r.deferred[w.UID]) > 0); err != nil {
			return err
		}
		if err := r.eachDeferred(w, func(kind *snapshot.Kind, version string, o map[string]any) error {
			return r.createOther(ctx, kind, version, o)
		}); err != nil {
			return err
		}
	}
	if others > 0 {
		r.note("%s", r.noProfile(others))
	}
	return r.loader.Wait(ctx)
}

// noProfile is the note about pods that name another scheduler.
func (r *run) noProfile(pods int) string {
	return fmt.Sprintf("%d pods name a scheduler that the configuration has no profile for: %s schedules them", pods,
		r.o.Scheduler.Request.Name)
}

// eachDeferred calls do with each object that refers to a waiting pod.
func (r *run) eachDeferred(w scenario.Waiting,
	do func(kind *snapshot.Kind, version string, o map[string]any) error) error {
	for _, d := range r.deferred[w.UID] {
		o, err := snapshot.Decode(d.object)
		if err != nil {
			return fmt.Errorf("read an object of pod %s: %w", w.Key, err)
		}
		if err := do(d.kind, d.version, o); err != nil {
			return err
		}
	}
	return nil
}

// appendPod creates a pod after the pods before, now or later.
func (r *run) appendPod(ctx context.Context, pod map[string]any, now bool) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	if err := r.loader.Append(ctx, pods, version, pod); err != nil || !now {
		return err
	}
	return r.loader.Wait(ctx)
}

func (r *run) createPod(ctx context.Context, pod map[string]any) error {
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	return r.loader.Create(ctx, pods, version, pod)
}

// kubeconfig writes the scheduler's kubeconfig: with all permissions, or, for a sandbox, with those
// of a kube-scheduler.
func (r *run) kubeconfig(ctx context.Context) (file string, err error) {
	file = filepath.Join(r.o.Dir, kubeconfigFile)
	if r.o.Scheduler.Request.Recorded {
		if err := r.permit(ctx); err != nil {
			return "", err
		}
		err = r.server.WriteSchedulerKubeconfig(file)
	} else {
		err = r.server.WriteKubeconfig(file, "")
	}
	if err != nil {
		return "", fmt.Errorf("write kubeconfig of the scheduler: %w", err)
	}
	return file, nil
}
