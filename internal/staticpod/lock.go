package staticpod

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Lock keeps two runs on one node apart. It is a lock of the kernel's on a file: a
// run that is killed loses it at once. holder is shown to who comes second.
func Lock(files Files, holder string) (unlock func() error, err error) {
	at, err := files.Resolve(path.Join(StateDir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return nil, explain("lock", StateDir, err)
	}
	file, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, explain("lock", StateDir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		by, _ := os.ReadFile(at)
		return nil, errors.Join(&Error{
			Err: fmt.Errorf("lock this node: another run is at work: %s", strings.TrimSpace(string(by))),
			Try: "wait until it has ended; a run that was killed holds no lock",
		}, file.Close())
	}
	if err == nil {
		err = errors.Join(file.Truncate(0), ignoreCount(file.WriteString(holder+"\n")))
	}
	if err != nil {
		return nil, errors.Join(explain("lock", StateDir, err), file.Close())
	}
	return file.Close, nil
}

func ignoreCount(_ int, err error) error { return err }
