// Package simulate runs a scheduler on a snapshot's pods: it starts a release's API server without
// controllers and kubelets, loads the snapshot, runs the scheduler itself, and reads the pods'
// nodes.
//
// A [Run] does that once, for one scenario, and an [Observer] follows it. Package scenario decides
// which pods are scheduled, load creates the objects, kubelet replaces kubelets and volume
// controllers, and report contains the result.
package simulate

import (
	"context"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Options are the scheduler, the scenario and the objects for one run.
type Options struct {
	Scheduler kubescheduler.Scheduler
	Scenario  scenario.Scenario
	Snapshot  capture.Objects
	// Dir is a private directory for data, keys and logs.
	Dir string
	// Timeout bounds the time that the scheduler gets to decide about all pods.
	Timeout time.Duration
	// Undecided accepts pods without a decision after Timeout: the report notes it. Otherwise it is
	// an error.
	Undecided bool
	// Observer follows the run. It defaults to [Unobserved].
	Observer Observer
	// AdmitsMore is set if the API server admits pods that neither the snapshot nor the scenario has.
	AdmitsMore bool
	// GCPercent is GOGC for the API server. It defaults to Go's default.
	GCPercent int
	// classes are the classes in the snapshot and in the scenarios so far, and admits is set if the
	// API server admits pods or claims from manifests.
	classes *load.Classes
	admits  bool
	// budgeted are the namespaces with PodDisruptionBudgets, in the snapshot or the scenarios so far.
	budgeted map[string]bool
	// external are the custom resources in earlier steps' manifests.
	external []scenario.Object
}

// Observer follows a [Run]. Its methods are called in the order below, each once. An error ends the
// run.
type Observer interface {
	// Loaded is called when the API server has the objects, except for the pods to schedule.
	Loaded(ctx context.Context, r *Run) error
	// Configure may change the scheduler's configuration before it starts.
	Configure(ctx context.Context, r *Run, c *kubescheduler.Configuration) error
	// Ready is called when the scheduler knows the objects, before it gets the pods.
	Ready(ctx context.Context, r *Run) error
	// Scheduled is called when the pods are scheduled and the report has the result, before more
	// copies of workloads are tried. The scheduler still runs.
	Scheduled(ctx context.Context, r *Run) error
}

// Unobserved is an [Observer] that does nothing. Observers embed it.
type Unobserved struct{}

// Loaded does nothing.
func (Unobserved) Loaded(context.Context, *Run) error { return nil }

// Configure does nothing.
func (Unobserved) Configure(context.Context, *Run, *kubescheduler.Configuration) error { return nil }

// Ready does nothing.
func (Unobserved) Ready(context.Context, *Run) error { return nil }

// Scheduled does nothing.
func (Unobserved) Scheduled(context.Context, *Run) error { return nil }
