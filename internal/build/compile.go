package build

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// make returns the binaries of a recipe, from the cache or compiled now.
func (j *job) make(ctx context.Context, r *recipe, targets []target) (*Result, error) {
	result := &Result{Info: r.info, Cached: true}
	result.Info.Inputs = combined(targets)
	var ready *prepared
	for _, t := range targets {
		s, found := j.cache.load(t.key)
		if !found {
			var err error
			if ready == nil {
				if ready, err = j.prepare(ctx, r, targets); err != nil {
					return nil, err
				}
			}
			if s, err = j.compileOnce(ctx, r, ready, t); err != nil {
				return nil, err
			}
			result.Cached = false
		}
		result.Binaries = append(result.Binaries, s.Binary)
		result.Info.addModules(s.Info.Modules)
	}
	return result, j.keepModule(ctx, r, result, ready)
}

// recall returns the result if every binary is in the cache already.
func (j *job) recall(r *recipe, targets []target) (*Result, bool) {
	result := &Result{Info: r.info, Cached: true}
	result.Info.Inputs = combined(targets)
	for _, t := range targets {
		s, found := j.cache.load(t.key)
		if !found {
			return nil, false
		}
		result.Binaries = append(result.Binaries, s.Binary)
		result.Info.addModules(s.Info.Modules)
	}
	return result, true
}

// prepared is a folder in which the packages of a recipe can be compiled.
type prepared struct{ dir, workspace string }

// prepare makes the folder and has go find every package that the targets need,
// so that what cannot be had is said before a compiler runs.
func (j *job) prepare(ctx context.Context, r *recipe, targets []target) (*prepared, error) {
	dir, workspace, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	ready := &prepared{dir: dir, workspace: workspace}
	step := "resolve the packages of " + r.info.Module
	return ready, j.step(step, func() error {
		for platform, packages := range byPlatform(targets) {
			args := append([]string{"list", "-deps", "-f", "{{.ImportPath}}", "-tags", r.tags}, modFlag(r)...)
			out, err := j.goRun(ctx, r, ready, platform, append(args, packages...))
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

// byPlatform returns the main packages of targets, as often as a platform needs them.
func byPlatform(targets []target) map[Platform][]string {
	packages := map[Platform][]string{}
	for _, t := range targets {
		if !slices.Contains(packages[t.Platform], t.Program.Package) {
			packages[t.Platform] = append(packages[t.Platform], t.Program.Package)
		}
	}
	return packages
}

func modFlag(r *recipe) []string {
	if r.mod == "" {
		return nil
	}
	return []string{"-mod=" + r.mod}
}

// goRun runs the recipe's version of Go for a platform.
func (j *job) goRun(ctx context.Context, r *recipe, ready *prepared, p Platform, args []string) (outcome, error) {
	golang, err := j.findGo(ctx)
	if err != nil {
		return outcome{}, err
	}
	variables := []string{"GOTOOLCHAIN=go" + r.info.Go, "GOOS=" + p.OS, "GOARCH=" + p.Arch, "GOWORK=" + ready.workspace}
	return j.run(ctx, golang.in(ready.dir, variables, args...))
}

// compileOnce compiles a target unless another process that builds the same has
// just done so.
func (j *job) compileOnce(ctx context.Context, r *recipe, ready *prepared, t target) (_ stored, err error) {
	held, err := j.acquire(ctx, t)
	if err != nil {
		return stored{}, err
	}
	defer func() {
		if released := held.release(); err == nil && released != nil {
			err = fmt.Errorf("unlock the build of %s: %w", t, released)
		}
	}()
	if s, found := j.cache.load(t.key); found {
		return s, nil
	}
	dir := filepath.Join(j.space.out, t.key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return stored{}, storage(ctx, "make a folder for "+t.String(), err)
	}
	path := filepath.Join(dir, t.Program.Name)
	step := "compile " + t.String()
	if err := j.step(step, func() error { return j.compile(ctx, r, ready, t, path) }); err != nil {
		return stored{}, err
	}
	if err := j.proveVersion(ctx, t, path); err != nil {
		return stored{}, err
	}
	return j.store(ctx, r, t, dir, path)
}

// acquire takes the lock for a target. If another build of the same holds it,
// that is a step of its own.
func (j *job) acquire(ctx context.Context, t target) (held *lock, err error) {
	step := "wait for another build of " + t.String()
	file, err := openLock(j.cache.lockPath(t.key))
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	if held, err = tryHold(file); err != nil {
		return nil, storage(ctx, step, err)
	}
	if held != nil {
		return held, nil
	}
	err = j.step(step, func() (err error) {
		if file, err = openLock(j.cache.lockPath(t.key)); err == nil {
			held, err = hold(ctx, file)
		}
		if err != nil {
			return storage(ctx, step, err)
		}
		return nil
	})
	return held, err
}

func (j *job) compile(ctx context.Context, r *recipe, ready *prepared, t target, path string) error {
	args := append([]string{"build"}, modFlag(r)...)
	args = append(args, "-trimpath", "-tags", r.tags, "-ldflags", r.ldflags, "-o", path)
	if stampsVersionControl(r.info.Go) {
		args = append(args, "-buildvcs=false")
	}
	out, err := j.goRun(ctx, r, ready, t.Platform, append(args, t.Program.Package))
	if err != nil {
		return r.explainPlugins(failure(ctx, "compile "+t.String(), out.tail, err))
	}
	return nil
}

// proveVersion runs a binary that is for this machine and compares what it says
// of itself with the release it was built from.
func (j *job) proveVersion(ctx context.Context, t target, path string) error {
	if t.prints == "" || t.Platform != Host() {
		return nil
	}
	step := "check " + t.Program.Name + " --version"
	return j.step(step, func() error {
		out, err := j.run(ctx, command{path: path, args: []string{"--version"}, dir: j.space.tmp, env: []string{"TMPDIR=" + j.space.tmp}})
		printed := strings.TrimSpace(string(out.stdout))
		if err == nil && printed == t.prints {
			return nil
		}
		if ctx.Err() != nil {
			return failure(ctx, step, "", ctx.Err())
		}
		return &Error{
			Step: step, Cause: CauseVersion, Output: out.tail, Err: err,
			Message: fmt.Sprintf("the binary should print %q and printed %q", t.prints, printed),
		}
	})
}

// store moves a finished binary into the cache, with what is known about it.
func (j *job) store(ctx context.Context, r *recipe, t target, dir, path string) (stored, error) {
	step := "store " + t.String()
	s := stored{Info: r.info, Binary: Binary{Program: t.Program.Name, Platform: t.Platform, Inputs: t.key}}
	s.Info.Inputs = t.key
	var err error
	if s.Binary.Size, s.Binary.SHA256, err = hashFile(path); err != nil {
		return stored{}, storage(ctx, step, err)
	}
	linked, err := linkedModules(path)
	if err != nil {
		return stored{}, storage(ctx, step, err)
	}
	s.Info.addModules(linked)
	if s.Binary, err = j.cache.publish(dir, t.key, s); err != nil {
		return stored{}, storage(ctx, step, err)
	}
	j.log.Debug("built", zap.Stringer("target", t), zap.String("sha256", s.Binary.SHA256), zap.Int64("bytes", s.Binary.Size))
	return s, nil
}

// linkedModules reads from a binary which modules it was linked from.
func linkedModules(path string) ([]ModuleVersion, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var linked []ModuleVersion
	for _, dep := range info.Deps {
		version := dep.Version
		if dep.Replace != nil && dep.Replace.Version != "" {
			version = dep.Replace.Version
		}
		linked = append(linked, ModuleVersion{Path: dep.Path, Version: version})
	}
	return linked, nil
}

// keepModule leaves the generated module where a person can look at it and
// compile it by hand. A clone is not kept when nothing was compiled.
func (j *job) keepModule(ctx context.Context, r *recipe, result *Result, ready *prepared) error {
	if !j.keep || ready == nil && len(r.files) == 0 {
		return nil
	}
	const step = "keep the module"
	if ready != nil && !strings.HasPrefix(ready.dir, j.space.module) {
		result.Dir = ready.dir
		return nil
	}
	root := j.cache.kept()
	if j.work != "" {
		root = j.work
	}
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
