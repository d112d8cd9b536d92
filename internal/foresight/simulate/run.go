package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/kubelet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Run is one run of a scenario: it loads the objects, has the scheduler decide about the waiting
// pods, and reads the result.
type Run struct {
	Options Options
	Session *session.Session
	// Loader creates objects on the API server.
	Loader *load.Loader
	// Waiting are the pods to schedule, in the order of the scheduler's queue.
	Waiting []scenario.Waiting
	// Scheduler is the scheduler that was started last. It is nil before.
	Scheduler *kubescheduler.Process
	// Report has the result when the pods are scheduled.
	Report *report.Report

	server backend
	kube   kubernetes.Interface
	// deadline is the end of the time that the scheduler has to decide about all pods.
	deadline time.Time
	// waits are the keys of the waiting pods.
	waits map[string]bool
	// deferred are the objects that refer to a waiting pod, by the pod's UID in the snapshot.
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
}

// backend is the API server of a run.
type backend interface {
	load.Storage
	Config() *rest.Config
	Remove(ctx context.Context, keys []string) error
	WriteKubeconfig(file, user string) error
	WriteSchedulerKubeconfig(file string) error
}

// newRun returns a run that has not begun.
func newRun(s *session.Session, server backend, o Options) *Run {
	o.Observer = cmp.Or[Observer](o.Observer, Unobserved{})
	return &Run{
		Options: o, Session: s, server: server, waits: map[string]bool{}, deferred: map[string][]deferredObject{},
		before: map[string]string{}, from: map[string]string{}, nodes: map[string]bool{}, pods: map[string]bool{},
		devices: newDevices(), attachments: scenario.NewAttachments(), moved: map[string]bool{},
		waitingClasses: map[string]bool{},
		budgets:        budgets{namespaces: o.budgeted, replicas: map[string]int{}, owners: map[string]string{}},
		namespaces:     map[string]bool{},
		quotas:         map[string][]string{}, next: make([]int, len(o.Scenario.Workloads)), copies: map[string]int{},
		Report: &report.Report{Scenario: o.Scenario.Name, Release: o.Scheduler.Release.String(),
			Scheduler: o.Scheduler.Request.Name},
	}
}

// Config returns the configuration for clients of the API server.
func (r *Run) Config() *rest.Config { return r.server.Config() }

// Bounded returns a context that ends with the time that the scheduler has for all pods.
func (r *Run) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, r.deadline)
}

func (r *Run) note(format string, args ...any) {
	r.Report.Notes = append(r.Report.Notes, fmt.Sprintf(format, args...))
}

// objects counts the run's nodes and pods.
func (r *Run) objects() int { return len(r.nodes) + len(r.pods) + r.addedNodes + r.addedPods }

// do runs the scenario.
func (r *Run) do(ctx context.Context) error {
	begin := time.Now()
	if err := r.Session.Step("load the objects", func() error { return r.load(ctx) }); err != nil {
		return err
	}
	r.Report.Summary.LoadSeconds = time.Since(begin).Seconds()
	if err := r.schedule(ctx); err != nil {
		return err
	}
	r.Report.Notes = append(r.Report.Notes, r.Scheduler.Notes...)
	r.Report.Finish()
	return nil
}

// schedule starts the scheduler, gives it the pods in its queue's order, and waits until it has
// decided about every pod.
func (r *Run) schedule(ctx context.Context) error {
	r.deadline = time.Now().Add(r.Options.Timeout)
	bounded, cancel := r.Bounded(ctx)
	defer cancel()
	late := map[string]bool{} // notes; read when the actors have ended
	actors := r.actors()
	actors.Note = func(text string) { late[text] = true }
	err := r.WithScheduler(ctx, actors, func() error {
		err := r.Session.Step("schedule "+plural.Count(len(r.Waiting), "pod"), func() error { return r.decide(bounded) })
		if err != nil {
			return err
		}
		if err := r.readResult(ctx); err != nil {
			return err
		}
		if err := r.Options.Observer.Scheduled(ctx, r); err != nil || len(r.Options.Scenario.Workloads) == 0 {
			return err
		}
		return r.Session.Step("try more copies", func() error { return r.fill(bounded) })
	})
	r.Report.Notes = append(r.Report.Notes, slices.Sorted(maps.Keys(late))...)
	return err
}

// actors returns the options for the kubelets and controllers that the objects need.
func (r *Run) actors() kubelet.Options {
	o := kubelet.Options{Log: r.Session.Log, Budgets: r.budgets.list()}
	if len(o.Budgets) > 0 {
		budgets, _ := snapshot.Find(snapshot.Kinds(), "policy/v1", "PodDisruptionBudget")
		o.BudgetResource = r.Loader.Resource(budgets)
	}
	if len(r.devices.gates) > 0 {
		o.Claims = r.Loader.Resource(claimKind())
	}
	return o
}

// WithScheduler runs the scheduler, and what replaces kubelets and controllers, while do runs.
func (r *Run) WithScheduler(ctx context.Context, o kubelet.Options, do func() error) (err error) {
	actors, stopActors := context.WithCancel(ctx)
	defer stopActors()
	wait, err := kubelet.Start(actors, r.Config(), o)
	if err != nil {
		return err
	}
	defer func() {
		stopActors()
		wait()
	}()
	if err := r.startScheduler(ctx); err != nil {
		return err
	}
	// It has nothing to lose. A scheduler up to 1.24 that waits for a pod does not end at SIGTERM (Run
	// in pkg/scheduler/scheduler.go).
	defer func() { err = errors.Join(err, r.Scheduler.Kill()) }()
	return do()
}

// decide gives the waiting pods to the scheduler.
func (r *Run) decide(ctx context.Context) error {
	if err := r.Scheduler.AwaitCache(ctx, r.NodeCount(), len(r.before)+r.addedPods); err != nil {
		return err
	}
	if err := r.countImages(ctx); err != nil {
		return err
	}
	if err := r.Options.Observer.Ready(ctx, r); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.createWaiting(ctx); err != nil {
		return err
	}
	if len(r.Waiting) == 0 {
		return nil
	}
	err := r.Scheduler.AwaitDecisions(ctx, len(r.Waiting))
	if err == nil {
		err = r.retryClaiming(ctx)
	}
	if r.Options.Undecided && errors.Is(err, context.DeadlineExceeded) {
		r.note("after %s the scheduler had not decided about all pods", r.Options.Timeout)
		err = nil
	}
	if err != nil {
		return err
	}
	r.Report.Summary.ScheduleSeconds = time.Since(begin).Seconds()
	return nil
}
