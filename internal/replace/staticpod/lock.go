package staticpod

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// Lock keeps two runs on one node apart. The kernel releases the lock when the process ends. holder
// is shown to the other run.
func Lock(files Files, holder string) (unlock func() error, err error) {
	at, err := files.Resolve(path.Join(StateDir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return nil, problem.NodeFile("lock", StateDir, err)
	}
	file, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, problem.NodeFile("lock", StateDir, err)
	}
	locked, err := safeio.TryLock(file)
	if err == nil && !locked {
		by, _ := os.ReadFile(at)
		return nil, errors.Join(problem.Errorf("wait until it ends; the lock of a killed run is released",
			"lock this node: another run is in progress: %s", strings.TrimSpace(string(by))), file.Close())
	}
	if err != nil {
		return nil, errors.Join(problem.NodeFile("lock", StateDir, err), file.Close())
	}
	// A full disk must not prevent a restore: the lock holds without its holder's name.
	if file.Truncate(0) == nil {
		_, _ = file.WriteString(holder + "\n")
	}
	return file.Close, nil
}
