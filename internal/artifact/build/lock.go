package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/flock"
)

// lockPoll is the interval for retrying a lock that is held.
const lockPoll = 100 * time.Millisecond

// lock is a file locked with flock(2): the kernel releases it when its holder dies, so locks do not
// become stale.
type lock struct{ file *os.File }

// openLock opens the file of a lock and creates it if necessary.
func openLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
}

// hold waits for the lock on an open file, which it closes on failure.
func hold(ctx context.Context, file *os.File) (*lock, error) {
	for {
		held, err := tryHold(file)
		if held != nil || err != nil {
			return held, err
		}
		if err := clock.Sleep(ctx, lockPoll); err != nil {
			return nil, err
		}
		if file, err = openLock(file.Name()); err != nil {
			return nil, err
		}
	}
}

// tryHold takes the lock if it is free, and otherwise closes the file. It returns nil without an error if
// the lock is held.
func tryHold(file *os.File) (*lock, error) {
	locked, err := flock.Try(file)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	case !locked:
		return nil, file.Close()
	}
	return &lock{file: file}, nil
}

func (l *lock) release() error { return l.file.Close() }
