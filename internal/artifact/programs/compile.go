package programs

import (
	"context"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

// ofKubernetes returns the names that are main packages of Kubernetes.
func ofKubernetes(names []string) []build.Program {
	var programs []build.Program
	for _, name := range names {
		if !hasOwnVersion(name) {
			programs = append(programs, build.Program{Name: name})
		}
	}
	return programs
}

// modules returns the modules for the names that are not main packages in Kubernetes.
func (f *Finder) modules(r Request, names []string) []build.ModuleOptions {
	var modules []build.ModuleOptions
	for _, m := range []struct{ name, module, version, main string }{
		{Etcd, build.EtcdModule, r.etcdVersion(), build.EtcdModule},
		{Runner, runnerModule, runnerVersion, runnerPackage},
		{Kwok, kwokModule, KwokVersion, kwokPackage},
	} {
		if slices.Contains(names, m.name) {
			modules = append(modules, build.ModuleOptions{
				Environment: f.Environment, Module: m.module, Version: m.version,
				Packages: []build.Program{{Name: m.name, Package: m.main}},
			})
		}
	}
	return modules
}

// compiledBefore returns the named programs that are in the build cache.
func (f *Finder) compiledBefore(ctx context.Context, r Request, names []string) (map[string]Program, error) {
	found := map[string]Program{}
	if programs := ofKubernetes(names); len(programs) > 0 {
		result, err := build.Cached(build.Options{Environment: f.Environment, Release: r.Release, Programs: programs})
		if err != nil {
			return nil, err
		}
		maps.Copy(found, Compiled(result))
	}
	for _, o := range f.modules(r, names) {
		// Without Go on this machine no program was compiled here.
		if result, err := build.CachedModule(ctx, o); err == nil {
			maps.Copy(found, Compiled(result))
		}
	}
	return found, ctx.Err()
}

// compile compiles the named programs.
func (f *Finder) compile(ctx context.Context, r Request, names []string) (map[string]Program, error) {
	found := map[string]Program{}
	if programs := ofKubernetes(names); len(programs) > 0 {
		result, err := build.Run(ctx, build.Options{Environment: f.Environment, Release: r.Release, Programs: programs})
		if err != nil {
			return nil, err
		}
		maps.Copy(found, Compiled(result))
	}
	for _, o := range f.modules(r, names) {
		result, err := build.Module(ctx, o)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, Compiled(result))
	}
	return found, nil
}

// Compiled returns a build's programs by name.
func Compiled(result *build.Result) map[string]Program {
	found := map[string]Program{}
	for _, b := range result.Binaries {
		origin := "module " + result.Info.Module + ", compiled with Go " + result.Info.Go
		found[b.Program] = Program{
			Name: b.Program, Version: result.Info.Release, Origin: origin, SHA256: b.SHA256, Path: b.Path,
		}
	}
	return found
}
