package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// compiler turns recipes into binaries in the cache.
type compiler struct {
	*goTool
	// keep keeps the generated module in the cache.
	keep bool
	// isolate is [Environment.Isolate].
	isolate func(ctx context.Context, dir, program string, args ...string) (string, error)
}

// build returns the recipe's binaries for a Go version. The recipe for the toolchain of the last
// build comes first: if its binaries are in the cache, nothing is downloaded.
func (c *compiler) build(
	ctx context.Context, tools *toolchains, named string, recipeFor func(toolchain) (*recipe, error),
) (*Result, error) {
	r, err := recipeFor(tools.recall(named))
	if err != nil {
		return nil, err
	}
	if result, found := c.recall(r); found {
		return result, c.keepModule(ctx, r, result, nil)
	}
	var used toolchain
	step := "set up Go " + cmp.Or(tools.chosen, named)
	err = c.step(step, func() (err error) { used, err = tools.find(ctx, named); return err })
	if err != nil {
		return nil, err
	}
	if r, err = recipeFor(used); err != nil {
		return nil, err
	}
	return c.make(ctx, r)
}

// make returns a recipe's binaries, from the cache or compiled.
func (c *compiler) make(ctx context.Context, r *recipe) (*Result, error) {
	result := newResult(r)
	binaries := map[string]stored{}
	missing := c.load(r.targets, binaries)
	var ready *prepared
	if len(missing) > 0 {
		var err error
		if ready, err = c.prepare(ctx, r); err != nil {
			return nil, err
		}
		result.Cached = false
	}
	for _, together := range groups(missing) {
		if err := c.compileOnce(ctx, r, ready, together, binaries); err != nil {
			return nil, err
		}
	}
	for _, t := range r.targets {
		result.add(binaries[t.key])
	}
	return result, c.keepModule(ctx, r, result, ready)
}

// load adds the binaries of targets that are in the cache and returns the other targets, each once.
func (c *compiler) load(targets []target, binaries map[string]stored) (missing []target) {
	for _, t := range targets {
		if s, found := c.cache.load(t.key); found {
			binaries[t.key] = s
		} else if !slices.ContainsFunc(missing, func(m target) bool { return m.key == t.key }) {
			missing = append(missing, t)
		}
	}
	return missing
}

// recall returns a recipe's result with its cached binaries, and reports whether all of them are
// cached.
func (c *compiler) recall(r *recipe) (result *Result, complete bool) {
	result = newResult(r)
	for _, t := range r.targets {
		if s, found := c.cache.load(t.key); found {
			result.add(s)
		}
	}
	return result, len(result.Binaries) == len(r.targets)
}

func modFlag(r *recipe) []string {
	if r.mod == "" {
		return nil
	}
	return []string{"-mod=" + r.mod}
}

// goRun runs the recipe's Go version for a platform.
func (c *compiler) goRun(ctx context.Context, r *recipe, ready *prepared, p Platform, args []string) (outcome, error) {
	cmd, err := c.goCommand(ctx, r, ready, p, args)
	if err != nil {
		return outcome{}, err
	}
	return c.run(ctx, cmd)
}

func (c *compiler) goCommand(
	ctx context.Context, r *recipe, ready *prepared, p Platform, args []string,
) (command, error) {
	golang, err := c.find(ctx)
	if err != nil {
		return command{}, err
	}
	variables := []string{"GOTOOLCHAIN=go" + r.info.Go, "GOOS=" + p.OS, "GOARCH=" + p.Arch, "GOWORK=" + ready.workspace}
	return golang.in(ready.dir, variables, args...), nil
}

// compileOnce compiles targets of one group, except targets that another process has just compiled,
// and adds their binaries.
func (c *compiler) compileOnce(
	ctx context.Context, r *recipe, ready *prepared, group []target, binaries map[string]stored,
) (err error) {
	held, err := c.acquireAll(ctx, group)
	if err != nil {
		return err
	}
	defer func() {
		if failed := releaseAll(held); err == nil && failed != nil {
			err = fmt.Errorf("unlock the build of %s: %w", describe(group), failed)
		}
	}()
	missing := c.load(group, binaries)
	if len(missing) == 0 {
		return nil
	}
	space, err := c.work.get(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 1 {
		if err := c.compileTogether(ctx, r, ready, space, missing); err != nil {
			return err
		}
	}
	for _, t := range missing {
		if binaries[t.key], err = c.finish(ctx, r, ready, space, t); err != nil {
			return err
		}
	}
	return nil
}

// finish compiles a target unless compileTogether has, checks the binary and moves it into the
// cache.
func (c *compiler) finish(ctx context.Context, r *recipe, ready *prepared, space *workspace, t target) (stored, error) {
	file := space.binary(t)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return stored{}, storage(ctx, "create a directory for "+t.String(), err)
		}
		step := "compile " + t.String()
		if err := c.step(step, func() error { return c.compile(ctx, r, ready, step, []target{t}, file) }); err != nil {
			return stored{}, err
		}
	}
	if err := c.checkVersion(ctx, r, space, t, file); err != nil {
		return stored{}, err
	}
	return c.store(ctx, r, t, filepath.Dir(file), file)
}

// compile compiles targets to a file, or to a directory if output ends with a separator.
func (c *compiler) compile(
	ctx context.Context, r *recipe, ready *prepared, step string, targets []target, output string,
) error {
	args := []string{"build", "-v"}
	if targets[0].Program.Test {
		args = []string{"test", "-c", "-vet=off"}
	}
	ldflags := r.ldflags
	if targets[0].Program.Unstamped {
		ldflags = stripped
	}
	args = append(args, modFlag(r)...)
	args = append(args, "-trimpath", "-tags", r.tags, "-ldflags", ldflags, "-o", output)
	if stampsVersionControl(r.info.Go) {
		args = append(args, "-buildvcs=false")
	}
	cmd, err := c.goCommand(ctx, r, ready, targets[0].Platform, append(args, packages(targets)...))
	if err != nil {
		return err
	}
	cmd.env = append(cmd.env, garbageCollection(c.env, r.info.Go, availableMemory(), runtime.NumCPU())...)
	counted := newProgress(ctx, r, targets, ready.packages[targets[0].Platform])
	cmd.drop = counted.drop
	out, err := c.run(ctx, cmd)
	if err != nil {
		return r.explainPlugins(failure(ctx, step, out.tail, err))
	}
	return nil
}

// checkVersion runs a binary that is for this machine and compares the version that it prints with
// the release.
func (c *compiler) checkVersion(ctx context.Context, r *recipe, space *workspace, t target, path string) error {
	if t.prints == "" || t.Platform != Host() {
		return nil
	}
	step := "check " + t.Program.Name + " --version"
	return c.step(step, func() error {
		out, err := c.runProgram(ctx, r, space, path, "--version")
		printed := strings.TrimSpace(string(out.stdout))
		if err == nil && printed == t.prints || errors.Is(err, ErrNotRun) {
			return nil
		}
		if ctx.Err() != nil {
			return failure(ctx, step, "", ctx.Err())
		}
		if refused := sameArguments(step, out.tail); refused != nil {
			return refused
		}
		return &Error{
			Step: step, Cause: CauseVersion, Output: out.tail, Err: err,
			Message: fmt.Sprintf("expected the binary to print %q, got %q", t.prints, printed),
		}
	})
}

// runProgram runs a compiled program. The code of plugins runs as soon as it starts.
func (c *compiler) runProgram(
	ctx context.Context, r *recipe, space *workspace, path string, args ...string,
) (outcome, error) {
	if r.plugins.Empty() || c.isolate == nil {
		return c.run(ctx, command{path: path, args: args, dir: space.tmp, env: []string{"TMPDIR=" + space.tmp}})
	}
	text, err := c.isolate(ctx, space.tmp, path, args...)
	text = strings.TrimSpace(text) // of both outputs: what init functions print comes first
	return outcome{stdout: []byte(text[strings.LastIndex(text, "\n")+1:]), tail: text}, err
}

// store moves a finished binary into the cache, with its description.
func (c *compiler) store(ctx context.Context, r *recipe, t target, dir, path string) (stored, error) {
	step := "store " + t.String()
	s := stored{Info: r.info, Binary: Binary{Program: t.Program.Name, Platform: t.Platform, Inputs: t.key}}
	s.Info.Inputs = t.key
	var err error
	if s.Binary.Size, s.Binary.SHA256, err = HashFile(path); err != nil {
		return stored{}, storage(ctx, step, err)
	}
	linked, err := ModuleSums(path)
	if err != nil {
		return stored{}, storage(ctx, step, err)
	}
	for _, m := range linked {
		s.Info.Modules = append(s.Info.Modules, m.ModuleVersion)
	}
	if s.Binary, err = c.cache.publish(dir, t.key, s); err != nil {
		return stored{}, storage(ctx, step, err)
	}
	c.log.Debug("built", zap.Stringer("target", t), zap.String("sha256", s.Binary.SHA256),
		zap.Int64("bytes", s.Binary.Size))
	return s, nil
}
