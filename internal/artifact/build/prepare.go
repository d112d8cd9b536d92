package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prepared is a directory in which a recipe's packages can be compiled, and GOWORK for it.
type prepared struct {
	dir, workspace string
	// temporary reports whether the directory is removed after the build.
	temporary bool
	// packages are the import paths of the packages that are linked into the targets, each with its
	// source size in bytes, or 0 if it is in Go's build cache and is not compiled.
	packages map[Platform]map[string]int64
}

// packageFormat is the line of a package for readPackages. cachedPackage is the reason for a
// package that the go command need not compile, although it calls it stale.
const (
	packageFormat = "{{.ImportPath}}\t{{.Stale}}\t{{.StaleReason}}\t{{.Dir}}\t{{join .GoFiles \"/\"}}"
	cachedPackage = "not installed but available in build cache"
)

// prepare creates the directory and resolves every package that the targets need, so that a missing
// module is reported before a compiler runs.
func (c *compiler) prepare(ctx context.Context, r *recipe) (*prepared, error) {
	ready, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	ready.packages = map[Platform]map[string]int64{}
	step := "resolve the packages of " + r.info.Module
	return ready, c.step(step, func() error {
		for platform, packages := range byPlatform(r.targets) {
			args := append([]string{"list", "-deps", "-f", packageFormat, "-trimpath", "-tags", r.tags}, modFlag(r)...)
			if slices.ContainsFunc(r.targets, func(t target) bool { return t.Program.Test }) {
				args = append(args, "-test")
			}
			out, err := c.goRun(ctx, r, ready, platform, append(args, packages...))
			if err == nil {
				if err := r.checkRequirements(out.tail); err != nil {
					return err
				}
				ready.packages[platform] = readPackages(out.stdout)
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

// readPackages returns the packages of a list with the bytes to compile.
func readPackages(list []byte) map[string]int64 {
	found := map[string]int64{}
	for line := range strings.Lines(string(list)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 {
			continue
		}
		found[fields[0]] = 0
		if fields[1] == "true" && fields[2] != cachedPackage {
			found[fields[0]] = sourceSize(fields[3], strings.Split(fields[4], "/"))
		}
	}
	return found
}

// sourceSize returns the size of a package's files, at least 1. It is used for an estimate, so a
// file that cannot be read does not matter.
func sourceSize(dir string, files []string) int64 {
	size := int64(1)
	for _, file := range files {
		if info, err := os.Stat(filepath.Join(dir, file)); err == nil {
			size += info.Size()
		}
	}
	return size
}

func byPlatform(targets []target) map[Platform][]string {
	found := map[Platform][]string{}
	for _, t := range targets {
		if !slices.Contains(found[t.Platform], t.Program.Package) {
			found[t.Platform] = append(found[t.Platform], t.Program.Package)
		}
	}
	return found
}

func packages(targets []target) []string {
	var all []string
	for _, t := range targets {
		all = append(all, t.Program.Package)
	}
	return all
}

// keepModule keeps the generated module, where the user can read it and compile it by hand. A clone
// is not kept if nothing was compiled.
func (c *compiler) keepModule(ctx context.Context, r *recipe, result *Result, ready *prepared) error {
	if !c.keep || ready == nil && len(r.files) == 0 {
		return nil
	}
	const step = "keep the module"
	if ready != nil && !ready.temporary {
		result.Dir = ready.dir
		return nil
	}
	root := c.cache.kept()
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

// writeModule writes a recipe's generated module to the directory to compile it in.
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
