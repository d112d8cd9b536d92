package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// workspace is where one build works: everything in it is gone afterwards.
type workspace struct {
	// module holds the generated module or the clone, tmp go's own
	// temporary files, and out, which is in the cache's file system,
	// binaries that are to be moved into the cache.
	module, tmp, out string
	folders          []*scratch
}

// workspace makes the temporary folders when they are first needed.
func (j *job) workspace(ctx context.Context) (*workspace, error) {
	if j.space != nil {
		return j.space, nil
	}
	const step = "make a folder to work in"
	inCache, err := newScratch(ctx, j.cache.temporary())
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	space := &workspace{out: filepath.Join(inCache.dir, "out"), folders: []*scratch{inCache}}
	work := inCache
	if j.work != "" {
		if work, err = newScratch(ctx, j.work); err != nil {
			return nil, errors.Join(storage(ctx, step, err), space.remove())
		}
		space.folders = append(space.folders, work)
	}
	space.module, space.tmp = filepath.Join(work.dir, "module"), filepath.Join(work.dir, "tmp")
	for _, dir := range []string{space.module, space.tmp, space.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(storage(ctx, step, err), space.remove())
		}
	}
	j.space = space
	return space, nil
}

func (w *workspace) remove() error {
	var failed error
	for _, folder := range w.folders {
		failed = errors.Join(failed, folder.remove())
	}
	return failed
}

// close ends the job: its folders go, whatever happened.
func (j *job) close(err *error) {
	if j.space == nil {
		return
	}
	if failed := j.space.remove(); failed != nil {
		*err = errors.Join(*err, fmt.Errorf("remove the folder worked in: %w", failed))
	}
	j.space = nil
}

// scratch is a temporary folder. The lock file beside it is held for as long as
// the folder is in use, so that what a killed process left behind can be told
// from what still serves.
type scratch struct {
	dir  string
	lock *lock
}

const (
	scratchPattern = "build-*"
	lockSuffix     = ".lock"
)

// newScratch removes what killed builds left in root and makes a folder there.
func newScratch(ctx context.Context, root string) (*scratch, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	sweep(root)
	file, err := os.CreateTemp(root, scratchPattern+lockSuffix)
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSuffix(file.Name(), lockSuffix)
	held, err := hold(ctx, file)
	if err != nil {
		return nil, err
	}
	folder := &scratch{dir: dir, lock: held}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, errors.Join(err, folder.remove())
	}
	return folder, nil
}

func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	if unlocked := os.Remove(s.dir + lockSuffix); !errors.Is(unlocked, fs.ErrNotExist) {
		err = errors.Join(err, unlocked)
	}
	return errors.Join(err, s.lock.release())
}

// sweep removes the folders in root whose lock nobody holds. One that cannot be
// removed now is tried again by the next build.
func sweep(root string) {
	names, err := filepath.Glob(filepath.Join(root, scratchPattern+lockSuffix))
	if err != nil {
		return
	}
	for _, name := range names {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if held, err := tryHold(file); err == nil && held != nil {
			_ = (&scratch{dir: strings.TrimSuffix(name, lockSuffix), lock: held}).remove()
		}
	}
}

// storage turns a failure to read or write files into the error that is returned.
func storage(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		return stopped(ctx, step)
	}
	e := diagnose(step, err.Error(), err)
	if e.Cause != CauseDiskFull {
		e.Cause, e.Message, e.Try = CauseUnknown, err.Error(), ""
	}
	e.Output = ""
	return e
}
