package build

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/build/goversion"
)

// Module builds mains of an ordinary module, with the same cache and errors as
// Run. The person's own Go compiles it if it is not older than the module's go
// line; otherwise the version that the module names is fetched.
func Module(ctx context.Context, o ModuleOptions) (_ *Result, err error) {
	step := fmt.Sprintf("build %s %s", o.Module, o.Version)
	if err := module.Check(o.Module, o.Version); err != nil {
		return nil, &Error{Step: step, Cause: CauseInput, Message: err.Error(), Err: err, Try: "give a module's path and its exact version"}
	}
	for _, p := range o.Packages {
		if p.Name == "" || strings.ContainsAny(p.Name, `/\`) || p.Name == storedFile || p.Package == "" {
			return nil, &Error{Step: step, Cause: CauseInput, Message: fmt.Sprintf("%q from package %q cannot be built: a program needs a file name and a package", p.Name, p.Package)}
		}
	}
	if o.CacheDir == "" {
		return nil, noCache()
	}
	j := newJob(o.CacheDir, o.WorkDir, o.Keep, o.Env, o.Log, o.OnStep)
	defer j.close(&err)
	s, err := j.source(ctx, o.Module, o.Version, func(failed *Error) error { return unknownVersion(o, failed) })
	if err != nil {
		return nil, err
	}
	named, err := j.goFor(ctx, s)
	if err != nil {
		return nil, err
	}
	r, targets, err := j.ordinaryRecipe(s, j.knownToolchain(named), o)
	if err != nil {
		return nil, err
	}
	if result, found := j.recall(r, targets); found {
		return result, j.keepModule(ctx, r, result, nil)
	}
	used, err := j.findToolchain(ctx, named)
	if err != nil {
		return nil, err
	}
	if r, targets, err = j.ordinaryRecipe(s, used, o); err != nil {
		return nil, err
	}
	return j.make(ctx, r, targets)
}

// goFor returns the version of Go to compile an ordinary module with.
func (j *job) goFor(ctx context.Context, s source) (string, error) {
	golang, err := j.findGo(ctx)
	if err != nil {
		return "", err
	}
	if s.GoDirective == "" || goversion.Compare(golang.version, s.GoDirective) >= 0 {
		return golang.version, nil
	}
	if s.Go != "" {
		return s.Go, nil
	}
	if strings.Count(s.GoDirective, ".") == 1 && goversion.Compare(s.GoDirective, goversion.Oldest) >= 0 {
		return s.GoDirective + ".0", nil
	}
	return s.GoDirective, nil
}

func (j *job) ordinaryRecipe(s source, used toolchain, o ModuleOptions) (*recipe, []target, error) {
	files, err := generateModule(s, "", "", nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("generate a module for %s: %w", s.Path, err)
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
	r.prepare = func(ctx context.Context) (string, string, error) { return j.writeModule(ctx, r) }
	targets, err := r.targets(o.Packages, orHost(o.Platforms))
	for i := range targets {
		targets[i].prints = ""
	}
	return r, targets, err
}

func unknownVersion(o ModuleOptions, failed *Error) error {
	if failed.Cause == CauseModuleMissing {
		failed.Modules = []string{o.Module + "@" + o.Version}
		failed.Message = fmt.Sprintf("the module proxy does not serve %s %s", o.Module, o.Version)
	}
	return failed
}
