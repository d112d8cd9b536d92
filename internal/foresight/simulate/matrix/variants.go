package matrix

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Variants run one scheduler in one scenario with configurations that are chosen one after the
// other, with the same programs and files. Close them.
type Variants struct {
	engine *engine
	names  []string // of the snapshots
}

// Variant is a configuration on a snapshot.
type Variant struct {
	// Snapshot is the place in the request.
	Snapshot int
	// Name is for messages.
	Name string
	// Configuration is a KubeSchedulerConfiguration. If its extenders have addresses from
	// [ties.Addresses], ties are broken by the request's seed.
	Configuration string
}

// OpenVariants compiles the programs and reads the files in a request with one scheduler and one
// scenario.
func OpenVariants(ctx context.Context, s *session.Session, r Request) (*Variants, error) {
	e, err := open(ctx, s, r)
	return &Variants{e, r.Snapshots}, err
}

// Close stops the API servers and removes the files.
func (v *Variants) Close() error { return v.engine.close() }

// Programs returns the programs for a snapshot.
func (v *Variants) Programs(snapshot int) simulate.Programs {
	return v.engine.plan.Schedulers[v.engine.plan.prepared[snapshot][0]]
}

// Snapshot opens a snapshot, which need not be closed.
func (v *Variants) Snapshot(snapshot int) (*capture.Snapshot, error) {
	return capture.OpenFile(v.engine.plan.Snapshots[snapshot])
}

// Run returns each variant's outcome. Variants on one snapshot should follow each other: they share
// an API server.
func (v *Variants) Run(ctx context.Context, s *session.Session, all []Variant) ([]Outcome, error) {
	cells := make([]plannedCell, len(all))
	for i, one := range all {
		cells[i] = plannedCell{
			Snapshot: one.Snapshot, Scheduler: v.engine.plan.prepared[one.Snapshot][0],
			Configuration: one.Configuration, ConfigurationName: one.Name,
			name: Cell{Snapshot: v.names[one.Snapshot], Scheduler: one.Name},
		}
	}
	return v.engine.runner.run(ctx, s, cells)
}
