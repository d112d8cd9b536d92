package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Servers are the API servers for simulations, one for each release: starting one takes longer than
// most simulations. Close them. They are not for use by several goroutines.
type Servers struct {
	s         *session.Session
	dir       string
	remove    func() error
	byRelease map[string]*Server
	dirs      int
}

// NewServers returns API servers, none of which is started. purpose is part of their temporary
// directory's name.
func NewServers(s *session.Session, purpose string) (*Servers, error) {
	dir, remove, err := safeio.MakeTemp(purpose)
	if err != nil {
		return nil, err
	}
	return &Servers{s: s, dir: dir, remove: remove, byRelease: map[string]*Server{}}, nil
}

// Close stops the API servers and removes their directory.
func (a *Servers) Close() error {
	var all []error
	for _, server := range a.byRelease {
		all = append(all, server.Close())
	}
	return errors.Join(append(all, a.remove())...)
}

// Run runs a scenario on the API server for the scheduler's release.
func (a *Servers) Run(ctx context.Context, p Programs, o Options) (*report.Report, error) {
	server, err := a.Prepare(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	return server.Run(ctx, o)
}

// Prepare returns the API server at the scheduler's release, and sets the scheduler and a new
// directory in the options for a run on it.
func (a *Servers) Prepare(ctx context.Context, p Programs, o *Options) (*Server, error) {
	if err := o.readClasses(); err != nil {
		return nil, err
	}
	server, err := a.find(ctx, p, o)
	if err != nil {
		return nil, err
	}
	o.Scheduler = p.Scheduler
	o.Dir, err = a.newDir()
	return server, err
}

// start starts the API server for the scheduler's release, so that the next run on a snapshot need
// not do so.
func (a *Servers) start(ctx context.Context, p Programs, objects capture.Objects) error {
	o := Options{Snapshot: objects}
	if err := o.readClasses(); err != nil {
		return err
	}
	_, err := a.find(ctx, p, &o)
	return err
}

// find returns the API server for the next run, which it starts if it does not run or is worn.
func (a *Servers) find(ctx context.Context, p Programs, o *Options) (*Server, error) {
	release := p.Scheduler.Release.String()
	if server := a.byRelease[release]; server != nil {
		if !server.isWorn() {
			return server, nil
		}
		delete(a.byRelease, release)
		if err := server.Close(); err != nil {
			return nil, err
		}
	}
	dir, err := a.newDir()
	if err != nil {
		return nil, err
	}
	err = a.s.Step("start the API server of "+release, func() error {
		server, err := startServer(ctx, a.s, p, dir, o)
		if err == nil {
			a.byRelease[release] = server
		}
		return err
	})
	return a.byRelease[release], err
}

// newDir returns a new directory for an API server or for one run.
func (a *Servers) newDir() (string, error) {
	a.dirs++
	dir := filepath.Join(a.dir, strconv.Itoa(a.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("prepare simulation: %w", err)
	}
	return dir, nil
}
