// Package flock locks files with flock(2). The kernel releases the lock when its holder exits or closes the file, so there are
// no stale locks.
package flock

import (
	"errors"
	"os"
	"syscall"
)

// Try locks an open file and reports whether it got the lock. It returns false without an error while another open file
// description holds it.
func Try(file *os.File) (bool, error) {
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
