package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Run builds the programs of a release. Binaries that were built before from the
// same inputs are taken from the cache. A failure is an *Error, except that a
// cancelled context is returned as the context's own error, wrapped.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	rules, warnings, err := versions.Select(o.Release)
	if err != nil {
		return nil, err
	}
	programs, err := kubernetesMains(o, rules)
	if err != nil {
		return nil, err
	}
	if o.Nearest && o.Source != "" {
		return nil, &Error{
			Step: "build " + o.Release.String(), Cause: CauseInput,
			Message: "the nearest patch whose modules download is asked for, and a source that is not made of modules", Try: "leave one of the two out",
		}
	}
	if o.CacheDir == "" {
		return nil, noCache()
	}
	j := newJob(o.CacheDir, o.WorkDir, o.Keep, o.Env, o.Log, o.OnStep)
	defer j.close(&err)
	j.nearest = o.Nearest
	k := &kubernetesBuild{job: j, release: o.Release, rules: rules, warnings: warnings, programs: programs, platforms: orHost(o.Platforms)}
	if given, found := strings.CutPrefix(o.Source, "git:"); found {
		if len(o.Plugins)+len(o.Imports) > 0 {
			return nil, pluginsNeedModules(o.Release)
		}
		return k.fromGit(ctx, given)
	}
	if len(o.Plugins)+len(o.Imports) > 0 {
		k.plugins = &o
	}
	if o.Source != "" {
		return nil, &Error{
			Step: "build " + o.Release.String(), Cause: CauseInput,
			Message: fmt.Sprintf("the source %q is not one that is known", redact(o.Source)),
			Try:     "leave it out to build from the Go modules, or give git: and a URL or folder",
		}
	}
	result, err := k.fromModules(ctx)
	if err != nil && o.Nearest {
		return k.fromNearest(ctx, err)
	}
	return result, err
}

// SourceInfo returns the version of Go that a release itself names, such as
// "1.18.3". What is in CacheDir or in Go's module cache needs no network;
// otherwise the release's module is downloaded, which the build needs anyway.
func SourceInfo(ctx context.Context, release versions.Release, o SourceOptions) (_ string, err error) {
	rules, _, err := versions.Select(release)
	if err != nil {
		return "", err
	}
	if o.CacheDir == "" {
		return "", noCache()
	}
	j := newJob(o.CacheDir, "", false, o.Env, o.Log, nil)
	defer j.close(&err)
	// Whoever only looks does not wait for the search for another patch.
	j.nearest = true
	s, err := j.release(ctx, release)
	if err != nil {
		return "", err
	}
	if s.Go == "" {
		return rules.Go, nil
	}
	return s.Go, nil
}

func noCache() *Error {
	return &Error{Step: "build", Cause: CauseInput, Message: "no cache folder was given"}
}

// kubernetesMains returns the programs to build, each with its main package.
func kubernetesMains(o Options, rules versions.Rules) ([]Program, error) {
	if len(o.Programs) == 0 {
		return []Program{{Name: KubeScheduler, Package: mainPackage}}, nil
	}
	var programs []Program
	for _, p := range o.Programs {
		if p.Name == "" || strings.ContainsAny(p.Name, `/\`) || p.Name == storedFile {
			return nil, &Error{
				Step: "build " + o.Release.String(), Cause: CauseInput,
				Message: fmt.Sprintf("%q cannot be the name of a program", p.Name), Try: "name a program of Kubernetes, such as kubelet",
			}
		}
		if p.Package == "" {
			p.Package = kubernetes + "/cmd/" + p.Name
		}
		if p.Name == KubeScheduler {
			p.Package = mainPackage
		}
		if p.Name == kubeAPIServer && !rules.GeneratedOpenAPI {
			if o.Source != "" {
				return nil, needsOpenAPI(o.Release)
			}
			p.Package = apiserverPackage
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// kubernetesBuild is a build of programs of one Kubernetes release.
type kubernetesBuild struct {
	*job
	release   versions.Release
	rules     versions.Rules
	warnings  []string
	programs  []Program
	platforms []Platform
	// plugins is set if there are any; with is what was read of them.
	plugins *Options
	with    *plugins.Set
}

// fromModules builds from the Go modules of the release. First it tries with
// what was learned before: then no go command has to run to see that all is built.
func (k *kubernetesBuild) fromModules(ctx context.Context) (*Result, error) {
	s, err := k.job.release(ctx, k.release)
	if err != nil {
		return nil, err
	}
	named, warnings := k.goNamed(s.Go)
	k.warnings = append(slices.Clone(k.warnings), warnings...)
	if err := k.readPluginSet(ctx, named); err != nil {
		return nil, err
	}
	if got, found := k.knownStaging(k.release); found {
		r, targets, err := k.moduleRecipe(s, got, k.knownToolchain(named))
		if err != nil {
			return nil, err
		}
		if result, found := k.recall(r, targets); found {
			return result, k.keepModule(ctx, r, result, nil)
		}
	}
	got, used, err := k.fetch(ctx, s, named)
	if err != nil {
		return nil, err
	}
	r, targets, err := k.moduleRecipe(s, got, used)
	if err != nil {
		return nil, err
	}
	return k.make(ctx, r, targets)
}

// goNamed returns the version of Go to look for, and a warning if the source
// does not name one.
func (k kubernetesBuild) goNamed(named string) (string, []string) {
	if named != "" {
		return named, nil
	}
	return k.rules.Go, []string{fmt.Sprintf("%s does not say which Go it is built with; Go %s is used", k.release, k.rules.Go)}
}

// fetch brings the staging modules and the compiler, both at a time.
func (k kubernetesBuild) fetch(ctx context.Context, s source, named string) (got staged, used toolchain, err error) {
	if _, err := k.findGo(ctx); err != nil {
		return staged{}, toolchain{}, err
	}
	err = k.step(fmt.Sprintf("fetch Go %s and the staging modules of %s", named, k.release), func() error {
		group, groupCtx := errgroup.WithContext(ctx)
		group.Go(func() (err error) { got, err = k.fetchStaging(groupCtx, k.release, s); return err })
		group.Go(func() (err error) { used, err = k.findToolchain(groupCtx, named); return err })
		return group.Wait()
	})
	return got, used, err
}

// moduleRecipe is the recipe for the generated module. It depends on nothing but
// its arguments and the release.
func (k kubernetesBuild) moduleRecipe(s source, got staged, used toolchain) (*recipe, []target, error) {
	pinned := pins(s, k.release.Staging())
	target := pluginTarget(s, pinned, k.release.Staging(), used.Used)
	requires, replaces := k.with.Directives(target)
	files, err := generateModule(s, k.release.Staging(), got.GoSum+k.with.Sums(), requires, replaces)
	if err != nil {
		return nil, nil, fmt.Errorf("generate a module for %s: %w", k.release, err)
	}
	scheduler, err := generateMain(k.release, k.rules, !k.with.Empty())
	if err != nil {
		return nil, nil, fmt.Errorf("generate the main of kube-scheduler %s: %w", k.release, err)
	}
	files[mainFile] = scheduler
	if err := addPlugins(files, k.with, target); err != nil {
		return nil, nil, fmt.Errorf("generate a module with plugins for %s: %w", k.release, err)
	}
	r := &recipe{
		info: Info{
			Release: k.release.String(), Go: used.Used, GoNamed: used.Named, GoDirective: s.GoDirective,
			Module: kubernetes + "@" + s.Version, Source: "modules", Date: s.Date,
			Plugins: k.with.Infos(), Imports: k.with.Imports(),
			Warnings: append(k.allWarnings(used, got), k.with.Warnings(target)...),
		},
		with: k.with, target: target, against: k.release.String(), files: files, mod: "mod", tags: buildTags(k.rules), ldflags: linkFlags(k.release, k.rules, moduleStamp(s.Date)),
		explain: func(ctx context.Context, failed *Error) error { return k.missingStaging(ctx, k.release, got, failed) },
	}
	r.prepare = func(ctx context.Context) (string, string, error) {
		dir, workspace, err := k.writeModule(ctx, r)
		if err == nil && slices.ContainsFunc(k.programs, func(p Program) bool { return p.Package == apiserverPackage }) {
			err = k.addAPIServer(ctx, r, &prepared{dir: dir, workspace: workspace})
		}
		return dir, workspace, err
	}
	targets, err := r.targets(k.programs, k.platforms)
	return r, targets, err
}

func (k kubernetesBuild) allWarnings(used toolchain, got staged) []string {
	warnings := slices.Clone(k.warnings)
	if warning := used.warning(k.release.String()); warning != "" {
		warnings = append(warnings, warning)
	}
	return append(warnings, got.warnings(k.release)...)
}

// writeModule writes a recipe's generated module where it is to be compiled.
func (j *job) writeModule(ctx context.Context, r *recipe) (dir, workspace string, err error) {
	space, err := j.workspace(ctx)
	if err != nil {
		return "", "", err
	}
	if err := r.write(space.module); err != nil {
		return "", "", storage(ctx, "write the generated module", err)
	}
	return space.module, "off", nil
}
