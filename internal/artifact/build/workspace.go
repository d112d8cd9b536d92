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

// workDir creates the temporary directories of a build when they are first needed.
type workDir struct {
	cache cache
	// root is the parent of the directories. If it is empty, they are created in the cache.
	root string
	made *workspace
}

// workspace is the temporary directories of a build.
type workspace struct {
	// module is for the generated module or the clone, tmp for the temporary files of go, and out for
	// binaries; out is in the file system of the cache, so that they can be moved there.
	module, tmp, out string
	scratches        []*scratch
}

func newWorkDir(c cache, root string) *workDir { return &workDir{cache: c, root: root} }

// get returns the temporary directories.
func (d *workDir) get(ctx context.Context) (*workspace, error) {
	if d.made != nil {
		return d.made, nil
	}
	const step = "create a temporary directory"
	inCache, err := newScratch(ctx, d.cache.temporary())
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	space := &workspace{out: filepath.Join(inCache.dir, "out"), scratches: []*scratch{inCache}}
	work := inCache
	if d.root != "" {
		if work, err = newScratch(ctx, d.root); err != nil {
			return nil, errors.Join(storage(ctx, step, err), space.remove())
		}
		space.scratches = append(space.scratches, work)
	}
	space.module, space.tmp = filepath.Join(work.dir, "module"), filepath.Join(work.dir, "tmp")
	for _, dir := range []string{space.module, space.tmp, space.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(storage(ctx, step, err), space.remove())
		}
	}
	d.made = space
	return space, nil
}

// binary returns the path that a target is compiled to. Its directory is moved into the cache.
func (w *workspace) binary(t target) string { return filepath.Join(w.out, t.key, t.Program.Name) }

func (w *workspace) remove() error {
	var failed error
	for _, s := range w.scratches {
		failed = errors.Join(failed, s.remove())
	}
	return failed
}

// close removes the temporary directories and adds the failure to do so to err.
func (d *workDir) close(err *error) {
	if d.made == nil {
		return
	}
	if failed := d.made.remove(); failed != nil {
		*err = errors.Join(*err, fmt.Errorf("remove the temporary directory: %w", failed))
	}
	d.made = nil
}

// scratch is a temporary directory with a lock file next to it. The lock is held while the directory is
// in use, which distinguishes it from one that a killed process left behind.
type scratch struct {
	dir  string
	lock *lock
}

const (
	scratchPattern = "build-*"
	lockSuffix     = ".lock"
)

// newScratch creates a directory in root, and removes the directories that killed builds left
// there.
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
	made := &scratch{dir: dir, lock: held}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, errors.Join(err, made.remove())
	}
	return made, nil
}

func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	if unlocked := os.Remove(s.dir + lockSuffix); !errors.Is(unlocked, fs.ErrNotExist) {
		err = errors.Join(err, unlocked)
	}
	return errors.Join(err, s.lock.release())
}

// sweep removes the directories in root whose lock is free. The next build retries directories that
// cannot be removed.
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

// storage returns the error for a failure to read or write files.
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
