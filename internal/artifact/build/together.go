package build

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// groups returns the targets that one go command compiles: those for the same platform, except
// programs whose file the go command would name otherwise.
func groups(targets []target) [][]target {
	var all [][]target
	for _, t := range targets {
		i := slices.IndexFunc(all, func(g []target) bool {
			return g[0].Platform == t.Platform && g[0].Program.Unstamped == t.Program.Unstamped &&
				g[0].namedByPackage() && t.namedByPackage()
		})
		if i < 0 {
			all = append(all, []target{t})
		} else {
			all[i] = append(all[i], t)
		}
	}
	return all
}

// namedByPackage reports whether `go build -o DIR/` gives the binary the program's name.
func (t target) namedByPackage() bool {
	return path.Base(t.Program.Package) == t.Program.Name && t.Platform.OS != "windows" && !t.Program.Test
}

// compileTogether compiles several targets with one go command: all processors have work while a
// program is linked or a large package is compiled. If the go command fails because of one target,
// it returns nil without binaries: each target is then compiled alone, so that the error is about
// one program.
func (c *compiler) compileTogether(
	ctx context.Context, r *recipe, ready *prepared, space *workspace, targets []target,
) error {
	dir := filepath.Join(space.out, "together")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return storage(ctx, "create a directory for "+describe(targets), err)
	}
	step := "compile " + describe(targets)
	err := c.step(step, func() error { return c.compile(ctx, r, ready, step, targets, dir+string(filepath.Separator)) })
	var failed *Error
	if errors.As(err, &failed) && (failed.Cause == CauseCompile || failed.Cause == CauseUnknown) {
		c.log.Debug("compile each program alone", zap.Error(err))
		return nil
	} else if err != nil {
		return err
	}
	for _, t := range targets {
		to := space.binary(t)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return storage(ctx, "create a directory for "+t.String(), err)
		}
		if err := os.Rename(filepath.Join(dir, t.Program.Name), to); err != nil {
			return storage(ctx, "move "+t.String(), err)
		}
	}
	return nil
}

func describe(targets []target) string {
	var names []string
	for _, t := range targets {
		names = append(names, t.Program.Name)
	}
	return strings.Join(names, ", ") + " for " + targets[0].Platform.String()
}

// acquireAll takes the locks for targets, in the same order in every process, so that no two builds
// wait for each other.
func (c *compiler) acquireAll(ctx context.Context, targets []target) (held []*os.File, err error) {
	sorted := slices.SortedFunc(slices.Values(targets), func(a, b target) int { return cmp.Compare(a.key, b.key) })
	for _, t := range sorted {
		l, err := c.acquire(ctx, t)
		if err != nil {
			return nil, errors.Join(err, releaseAll(held))
		}
		held = append(held, l)
	}
	return held, nil
}

func releaseAll(held []*os.File) error {
	var failed error
	for _, l := range held {
		failed = errors.Join(failed, l.Close())
	}
	return failed
}

// acquire takes the lock for a target. To wait for another build of the same target is a step.
func (c *compiler) acquire(ctx context.Context, t target) (*os.File, error) {
	step := "wait for another build of " + t.String()
	file, err := c.cache.openLock(t.key)
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	locked, err := safeio.TryLock(file)
	if err == nil && !locked {
		err = c.step(step, func() error { return safeio.Lock(ctx, file) })
	}
	if err != nil {
		return nil, errors.Join(storage(ctx, step, err), file.Close())
	}
	return file, nil
}
