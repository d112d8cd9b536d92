package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// workDir creates a build's temporary directories when they are first needed. They are in the
// cache's file system, so that binaries can be moved there.
type workDir struct {
	cache cache
	made  *workspace
}

// workspace is a build's temporary directories: module is for the generated module or the clone,
// tmp for the temporary files of go, and out for binaries.
type workspace struct {
	module, tmp, out string
	remove           func() error
}

func (d *workDir) get(ctx context.Context) (*workspace, error) {
	if d.made != nil {
		return d.made, nil
	}
	const step = "create a temporary directory"
	parent := d.cache.temporary()
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, storage(ctx, step, err)
	}
	root, remove, err := safeio.MakeTempIn(parent, "build-")
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	space := &workspace{
		module: filepath.Join(root, "module"), tmp: filepath.Join(root, "tmp"), out: filepath.Join(root, "out"),
		remove: remove,
	}
	for _, dir := range []string{space.module, space.tmp, space.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(storage(ctx, step, err), remove())
		}
	}
	d.made = space
	return space, nil
}

// binary returns the path that a target is compiled to. Its directory is moved into the cache.
func (w *workspace) binary(t target) string { return filepath.Join(w.out, t.key, t.Program.Name) }

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
