package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// apiServers are the API servers of simulations, one for each release: the start of one takes longer than
// most simulations. Close them. They are not for use by several goroutines.
type apiServers struct {
	s         *Session
	dir       string
	remove    func() error
	byRelease map[string]*simulate.Server
	dirs      int
}

// newAPIServers returns API servers, none of which is started. purpose is part of the name of their
// temporary directory.
func (s *Session) newAPIServers(purpose string) (*apiServers, error) {
	dir, remove, err := tempdir.Make(purpose)
	if err != nil {
		return nil, err
	}
	return &apiServers{s: s, dir: dir, remove: remove, byRelease: map[string]*simulate.Server{}}, nil
}

// Close stops the API servers and removes their directory.
func (a *apiServers) Close() error {
	var all []error
	for _, server := range a.byRelease {
		all = append(all, server.Close())
	}
	return errors.Join(append(all, a.remove())...)
}

// server returns the API server of the scheduler's release for the next run, which it starts if it does not run or is worn.
func (a *apiServers) server(ctx context.Context, o simulate.Options) (*simulate.Server, error) {
	release := o.Scheduler.Release.String()
	var err error
	if server := a.byRelease[release]; server != nil {
		if !server.Worn() {
			return server, nil
		}
		delete(a.byRelease, release)
		if err = server.Close(); err != nil {
			return nil, err
		}
	}
	if o.Dir, err = a.newDir(); err != nil {
		return nil, err
	}
	err = a.s.Step("start the API server of "+release, func() error {
		server, err := simulate.StartServer(ctx, o)
		if err == nil {
			a.byRelease[release] = server
		}
		return err
	})
	return a.byRelease[release], err
}

// newDir returns a new directory for an API server or for one run.
func (a *apiServers) newDir() (string, error) {
	a.dirs++
	dir := filepath.Join(a.dir, strconv.Itoa(a.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("prepare simulation: %w", err)
	}
	return dir, nil
}
