package simulate

import (
	"context"
	"errors"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Opened are the objects, the compiled scheduler and the API servers for an [Input]. Close it.
type Opened struct {
	Snapshot *capture.Snapshot
	Programs Programs
	Servers  *Servers
}

// Open opens the objects, compiles the scheduler, and prepares API servers. purpose is part of
// their temporary directory's name.
func (in Input) Open(ctx context.Context, s *session.Session, purpose string) (o *Opened, err error) {
	o = &Opened{}
	if o.Snapshot, err = capture.Open(ctx, s, in.Snapshot); err != nil {
		return nil, err
	}
	if o.Programs, err = Compile(ctx, s, in.Scheduler, o.Snapshot.Header); err == nil {
		o.Servers, err = NewServers(s, purpose)
	}
	if err != nil {
		return nil, errors.Join(err, o.Snapshot.Close())
	}
	return o, nil
}

// Close closes all of them.
func (o *Opened) Close() error { return errors.Join(o.Servers.Close(), o.Snapshot.Close()) }

// ConsistencyNotes returns a note on objects from several moments.
func ConsistencyNotes(h *snapshot.Header) []string {
	if h.Consistent {
		return nil
	}
	return []string{"the objects of the snapshot may be of several moments"}
}
