package safeio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MakeTemp creates the directory pmk-sched-PURPOSE-… in the system's temporary directory, as
// [MakeTempIn] does.
func MakeTemp(purpose string) (dir string, remove func() error, err error) {
	if dir, remove, err = MakeTempIn(os.TempDir(), "pmk-sched-"+purpose+"-"); err != nil {
		return "", nil, fmt.Errorf("create a temporary directory for the %s: %w", purpose, err)
	}
	return dir, remove, nil
}

// MakeTempIn creates a directory with a prefix in root, after removing the directories with the
// prefix that killed runs of this user left there. Call remove once, when the directory is not
// needed any more.
//
// A lock on the directory distinguishes one that is in use from one that is left over. On a file
// system that cannot lock a directory none is removed.
func MakeTempIn(root, prefix string) (dir string, remove func() error, err error) {
	sweep(root, prefix)
	for {
		dir, err := os.MkdirTemp(root, prefix)
		if err != nil {
			return "", nil, err
		}
		lock, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the sweep of another run was faster than the lock
		}
		if err != nil {
			return "", nil, errors.Join(fmt.Errorf("lock it: %w", err), os.Remove(dir))
		}
		if locked, err := TryLock(lock); err == nil && (!locked || !exists(dir)) {
			_ = lock.Close()
			continue
		}
		return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
	}
}

func exists(dir string) bool {
	_, err := os.Lstat(dir)
	return err == nil
}

// sweep removes the directories whose lock is free. It leaves directories that cannot be removed to
// the next run.
func sweep(root, prefix string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			sweepOne(filepath.Join(root, e.Name()))
		}
	}
}

// sweepOne removes a directory of this user if its lock is free. Its parent is often writable by
// all users.
func sweepOne(dir string) {
	lock, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	info, err := lock.Stat()
	if err != nil {
		return
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Geteuid() {
		return
	}
	if free, err := TryLock(lock); err == nil && free {
		_ = os.RemoveAll(dir)
	}
}
