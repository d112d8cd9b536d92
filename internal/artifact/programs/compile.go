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

// etcd 3.4 is a module without a major version in its path, whose tags are therefore not versions
// of it. oldEtcdModuleVersion is the one by which Kubernetes 1.20 requires oldEtcdVersion, which
// kubeadm of 1.20 and 1.21 runs.
const (
	oldEtcdModule        = "go.etcd.io/etcd"
	oldEtcdModuleVersion = "v0.5.0-alpha.5.0.20200910180754-dd1b699fc489"
	oldEtcdVersion       = "v3.4.13"
)

// etcdModule returns the module of the request's etcd, which is also its main package, and the
// module's version.
func (r Request) etcdModule() (path, version string) {
	if version := r.etcdVersion(); version != oldEtcdVersion {
		return build.EtcdModule, version
	}
	return oldEtcdModule, oldEtcdModuleVersion
}

// modules returns the modules for the names that are not main packages in Kubernetes.
func (f *Finder) modules(r Request, names []string) []build.ModuleOptions {
	var modules []build.ModuleOptions
	etcd, etcdVersion := r.etcdModule()
	for _, m := range []struct{ name, module, version, main string }{
		{Etcd, etcd, etcdVersion, etcd},
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
			maps.Copy(found, r.compiledModule(result))
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
		maps.Copy(found, r.compiledModule(result))
	}
	return found, nil
}

// compiledModule returns the programs of a module by name. The version of etcd is the one that it
// reports itself, which can differ from its module's.
func (r Request) compiledModule(result *build.Result) map[string]Program {
	found := Compiled(result)
	if etcd, ok := found[Etcd]; ok {
		etcd.Version = r.etcdVersion()
		found[Etcd] = etcd
	}
	return found
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
