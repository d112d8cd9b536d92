package build

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// prepared is a directory in which the packages of a recipe can be compiled, and GOWORK for it.
type prepared struct {
	dir, workspace string
	// temporary reports whether the directory is removed after the build.
	temporary bool
}

// prepare creates the directory and resolves every package that the targets need, so that a missing
// module is reported before a compiler runs.
func (c *compiler) prepare(ctx context.Context, r *recipe) (*prepared, error) {
	ready, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	step := "resolve the packages of " + r.info.Module
	return ready, c.step(step, func() error {
		for platform, packages := range byPlatform(r.targets) {
			args := append([]string{"list", "-deps", "-f", "{{.ImportPath}}", "-tags", r.tags}, modFlag(r)...)
			out, err := c.goRun(ctx, r, ready, platform, append(args, packages...))
			if err == nil {
				if err := r.checkRequirements(out.tail); err != nil {
					return err
				}
				continue
			}
			failed := r.explainPlugins(failure(ctx, step, out.tail, err))
			var known *Error
			if r.explain != nil && errors.As(failed, &known) {
				return r.explain(ctx, known)
			}
			return failed
		}
		return nil
	})
}

// byPlatform returns the main packages of targets for each platform.
func byPlatform(targets []target) map[Platform][]string {
	packages := map[Platform][]string{}
	for _, t := range targets {
		if !slices.Contains(packages[t.Platform], t.Program.Package) {
			packages[t.Platform] = append(packages[t.Platform], t.Program.Package)
		}
	}
	return packages
}

// keepModule keeps the generated module, where the user can read it and compile it by hand. A clone is
// not kept if nothing was compiled.
func (c *compiler) keepModule(ctx context.Context, r *recipe, result *Result, ready *prepared) error {
	if !c.keep || ready == nil && len(r.files) == 0 {
		return nil
	}
	const step = "keep the module"
	if ready != nil && !ready.temporary {
		result.Dir = ready.dir
		return nil
	}
	root := cmp.Or(c.keepIn, c.cache.kept())
	if err := os.MkdirAll(root, 0o755); err != nil {
		return storage(ctx, step, err)
	}
	dir, err := os.MkdirTemp(root, "module-"+r.info.Release+"-*")
	if err != nil {
		return storage(ctx, step, err)
	}
	if ready == nil {
		err = r.write(dir)
	} else {
		err = errors.Join(os.Remove(dir), os.Rename(ready.dir, dir))
	}
	if err != nil {
		return storage(ctx, step, errors.Join(err, os.RemoveAll(dir)))
	}
	result.Dir, err = filepath.Abs(dir)
	return err
}

// writeModule writes the generated module of a recipe to the directory to compile it in.
func (c *compiler) writeModule(ctx context.Context, r *recipe) (*prepared, error) {
	space, err := c.work.get(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.write(space.module); err != nil {
		return nil, storage(ctx, "write the generated module", err)
	}
	return &prepared{dir: space.module, workspace: "off", temporary: true}, nil
}
