package build

import (
	"context"
	"fmt"
	goversion "go/version"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Module builds main packages of any module, with the same cache and errors as Run. The user's own
// Go compiles it unless the module's go line is newer; then the version that the module names is
// downloaded.
func Module(ctx context.Context, o ModuleOptions) (_ *Result, err error) {
	if err := module.Check(o.Module, o.Version); err != nil {
		return nil, problem.Invalidf("specify the path of a module and its exact version",
			"build %s %s: %w", o.Module, o.Version, err)
	}
	for _, p := range o.Packages {
		if p.Name == "" || strings.ContainsAny(p.Name, `/\`) || p.Name == storedFile || p.Package == "" {
			return nil, problem.Invalidf("",
				"build %s %s: invalid program %q of package %q: a file name and a package are required",
				o.Module, o.Version, p.Name, p.Package)
		}
	}
	j, err := newJob(o.Environment)
	if err != nil {
		return nil, err
	}
	defer j.close(&err)
	s, err := j.goTool.source(ctx, o.Module, o.Version, func(failed *Error) error { return unknownVersion(o, failed) })
	if err != nil {
		return nil, err
	}
	named, err := j.goTool.versionFor(ctx, s)
	if err != nil {
		return nil, err
	}
	if o.Go != "" && goversion.Compare("go"+o.Go, "go"+named) > 0 {
		named = o.Go
	}
	return j.compiler.build(ctx, j.toolchains, named,
		func(used toolchain) (*recipe, error) { return j.compiler.moduleRecipe(s, used, o) })
}

// CachedModule returns the programs of a module that were compiled before: a result with only the
// binaries in the build cache, perhaps none. It reads nothing from the network.
func CachedModule(ctx context.Context, o ModuleOptions) (_ *Result, err error) {
	j, err := newJob(o.Environment)
	if err != nil {
		return nil, err
	}
	defer j.close(&err)
	s, found := j.goTool.recallSource(o.Module, o.Version)
	if !found {
		return &Result{}, nil
	}
	named, err := j.goTool.versionFor(ctx, s)
	if err != nil {
		return nil, err
	}
	r, err := j.compiler.moduleRecipe(s, j.toolchains.recall(named), o)
	if err != nil {
		return nil, err
	}
	result, _ := j.compiler.recall(r)
	return result, nil
}

// versionFor returns the Go version to compile a module with.
func (t *goTool) versionFor(ctx context.Context, s source) (string, error) {
	golang, err := t.find(ctx)
	if err != nil {
		return "", err
	}
	if s.GoDirective == "" || goversion.Compare("go"+golang.version, "go"+s.GoDirective) >= 0 {
		return golang.version, nil
	}
	if s.Go != "" {
		return s.Go, nil
	}
	if strings.Count(s.GoDirective, ".") == 1 && goversion.Compare("go"+s.GoDirective, "go"+plugins.OldestGo) >= 0 {
		return s.GoDirective + ".0", nil
	}
	return s.GoDirective, nil
}

func (c *compiler) moduleRecipe(s source, used toolchain, o ModuleOptions) (*recipe, error) {
	files, err := generateModule(s, "", "", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("generate a module for %s: %w", s.Path, err)
	}
	r := &recipe{
		info: Info{
			Release: s.Version, Go: used.Used, GoNamed: used.Named, GoDirective: s.GoDirective,
			Module: s.Path + "@" + s.Version, Source: "modules", Date: s.Date,
		},
		files: files, mod: "mod", ldflags: stripped,
	}
	if warning := used.warning(s.Path); warning != "" {
		r.info.Warnings = []string{warning}
	}
	r.prepare = func(ctx context.Context) (*prepared, error) { return c.writeModule(ctx, r) }
	return r, r.setTargets(o.Packages, o.Platforms)
}

func unknownVersion(o ModuleOptions, failed *Error) error {
	if failed.Cause == CauseModuleMissing {
		failed.Modules = []string{o.Module + "@" + o.Version}
		failed.Message = fmt.Sprintf("the module proxy does not serve %s %s", o.Module, o.Version)
	}
	return failed
}
