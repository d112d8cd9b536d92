package simulate

import (
	"context"
	"errors"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// opened are the objects, the compiled scheduler and the API servers for an [Input]. Close it.
type opened struct {
	snapshot *capture.Snapshot
	programs Programs
	servers  *Servers
}

// open opens the objects, compiles the scheduler, and prepares API servers. purpose is part of
// their temporary directory's name.
func (in Input) open(ctx context.Context, s *session.Session, purpose string) (o *opened, err error) {
	o = &opened{}
	if o.snapshot, err = capture.Open(ctx, s, in.Snapshot); err != nil {
		return nil, err
	}
	if o.programs, err = Compile(ctx, s, in.Scheduler, o.snapshot.Header); err == nil {
		o.servers, err = NewServers(s, purpose)
	}
	if err != nil {
		return nil, errors.Join(err, o.snapshot.Close())
	}
	return o, nil
}

func (o *opened) close() error { return errors.Join(o.servers.Close(), o.snapshot.Close()) }

// consistencyNotes returns a note on objects from several moments.
func consistencyNotes(h *snapshot.Header) []string {
	if h.Consistent {
		return nil
	}
	return []string{"the objects of the snapshot may be of several moments"}
}
