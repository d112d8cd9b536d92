package safeio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// poll is the interval for retrying a lock that is held.
const poll = 100 * time.Millisecond

// Lock locks an open file with flock(2). It waits while another open file description holds the
// lock. The kernel releases the lock when its holder exits or closes the file, so there are no
// stale locks.
func Lock(ctx context.Context, file *os.File) error {
	for {
		if locked, err := TryLock(file); err != nil {
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		} else if locked {
			return nil
		}
		if err := clock.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// TryLock locks an open file and reports whether it got the lock. It returns false without an error
// while another open file description holds it.
func TryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}
