// Package build compiles the programs in a Kubernetes release, and main packages from other Go
// modules, into static binaries. It is the only package that runs the go command.
//
// A release's source is its Go module. A generated module requires k8s.io/kubernetes at the
// release, pins every staging module to the version that was published with it, copies the
// release's own replace directives, go.sum and godebug settings, and is compiled with the Go
// version that the release names. Every go command gets an environment that is derived from the
// given one, so that the user's GOFLAGS, GOWORK, GOOS and so on do not change the result.
//
// All inputs that decide a binary's bytes are hashed before a compiler starts. The hash is the name
// of the binary's directory in the build cache: a second identical build only reads the cache, and
// different directories and machines produce the same bytes.
//
// [Run] reads the release (source.go), generates its module (generate.go), looks for the binaries
// in the cache (cachekey.go, cache.go), and compiles missing binaries (compile.go).
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Run builds a release's programs. Binaries that were built before from the same inputs are taken
// from the cache. A failed build is an *Error; an error about the input is Invalid; the error of a
// canceled context is wrapped.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if o.Nearest && o.Source != "" {
		return nil, problem.Invalidf("remove one of the two",
			"--nearest and --source exclude each other: only modules have a nearest patch")
	}
	if err := checkDatabase(o); err != nil {
		return nil, err
	}
	k, err := newReleaseBuild(o)
	if err != nil {
		return nil, err
	}
	defer k.close(&err)
	if given, found := strings.CutPrefix(o.Source, "git:"); found {
		if len(o.Plugins)+len(o.Imports) > 0 {
			return nil, pluginsNeedModules(o.Release)
		}
		return k.fromGit(ctx, given)
	}
	if o.Source != "" {
		return nil, problem.Invalidf("remove it to build from the Go modules, or use git: with a URL or a directory",
			"unknown source %q", redact(o.Source))
	}
	result, err := k.fromModules(ctx)
	if err != nil && o.Nearest {
		return k.fromNearest(ctx, err)
	}
	return result, err
}

// Cached returns the programs of a release that were compiled before, without plugins: a result
// with only the binaries in the build cache, perhaps none. It reads nothing from the network and
// runs no go command.
func Cached(o Options) (_ *Result, err error) {
	k, err := newReleaseBuild(o)
	if err != nil {
		return nil, err
	}
	defer k.close(&err)
	s, found := k.releases.recallSource(kubernetes, o.Release.String())
	if !found {
		return &Result{}, nil
	}
	known, found := k.releases.recallStaging(o.Release)
	if !found {
		return &Result{}, nil
	}
	named, _ := k.goVersion(s.Go)
	r, err := k.moduleRecipe(s, known, k.toolchains.recall(named), &plugins.Set{})
	if err != nil {
		return nil, err
	}
	result, _ := k.compiler.recall(r)
	return result, nil
}

// newReleaseBuild returns a build, which the caller closes.
func newReleaseBuild(o Options) (*releaseBuild, error) {
	rules := o.Release.Rules()
	programs, err := kubernetesPrograms(o, rules)
	if err != nil {
		return nil, err
	}
	j, err := newJob(o.Environment)
	if err != nil {
		return nil, err
	}
	j.compiler.keep, j.releases.noHints = o.Keep, o.Nearest
	return &releaseBuild{job: j, options: o, release: o.Release, rules: rules, programs: programs}, nil
}

// SourceInfo returns the Go version that a release names, such as "1.18.3". It needs no network if
// the release is in the build cache or in Go's module cache; otherwise it downloads the release's
// module, which a build needs anyway.
func SourceInfo(ctx context.Context, release versions.Release, e Environment) (_ string, err error) {
	j, err := newJob(e)
	if err != nil {
		return "", err
	}
	defer j.close(&err)
	// A lookup does not wait for the search for another patch.
	j.releases.noHints = true
	s, err := j.releases.read(ctx, release)
	if err != nil {
		return "", err
	}
	return cmp.Or(s.Go, release.Rules().Go), nil
}

// SourceDir returns the directory of a release's module in Go's module cache, and downloads the
// module unless it is there. The files are read-only.
func SourceDir(ctx context.Context, release versions.Release, e Environment) (_ string, err error) {
	j, err := newJob(e)
	if err != nil {
		return "", err
	}
	defer j.close(&err)
	step := "find the source of " + release.String()
	answers, err := j.goTool.download(ctx, step, kubernetes+"@"+release.String())
	if err != nil {
		return "", err
	}
	if failed := answers[0].Error; failed != "" {
		return "", j.releases.explainUnknown(ctx, release,
			diagnose(step, redact(failed), errors.New("go mod download failed")))
	}
	return answers[0].Dir, nil
}

// kubernetesPrograms returns the programs to build, each with its main package.
func kubernetesPrograms(o Options, rules versions.Rules) ([]Program, error) {
	if len(o.Programs) == 0 {
		return []Program{{Name: KubeScheduler, Package: SchedulerPackage}}, nil
	}
	var programs []Program
	for _, p := range o.Programs {
		if p.Name == "" || strings.ContainsAny(p.Name, `/\`) || p.Name == storedFile {
			return nil, problem.Invalidf("name a program of Kubernetes, such as kubelet", "invalid program %q", p.Name)
		}
		if p.Package == "" {
			p.Package = kubernetes + "/cmd/" + p.Name
		}
		if p.Name == KubeScheduler {
			p.Package = SchedulerPackage
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

type releaseBuild struct {
	*job
	options  Options
	release  versions.Release
	rules    versions.Rules
	warnings []string
	programs []Program
}

// fromModules builds from the release's Go modules: it reads the release and the plugins, generates
// a module, and compiles it. It starts with the results of earlier builds: if all binaries are in
// the cache, no go command runs.
func (k *releaseBuild) fromModules(ctx context.Context) (*Result, error) {
	s, named, set, err := k.readSources(ctx)
	if err != nil {
		return nil, err
	}
	if known, found := k.releases.recallStaging(k.release); found {
		r, err := k.moduleRecipe(s, known, k.toolchains.recall(named), set)
		if err != nil {
			return nil, err
		}
		if result, found := k.compiler.recall(r); found {
			return k.checkVulnerabilities(ctx, r, result, k.compiler.keepModule(ctx, r, result, nil))
		}
	}
	got, used, err := k.download(ctx, s, named)
	if err != nil {
		return nil, err
	}
	r, err := k.moduleRecipe(s, got, used, set)
	if err != nil {
		return nil, err
	}
	result, err := k.compiler.make(ctx, r)
	return k.checkVulnerabilities(ctx, r, result, err)
}

// readSources reads the release and the plugins, and chooses the Go version. It returns the source
// as that version compiles it, the version that the release names, and the plugins.
func (k *releaseBuild) readSources(ctx context.Context) (s source, named string, set *plugins.Set, err error) {
	if s, err = k.releases.read(ctx, k.release); err != nil {
		return s, "", nil, err
	}
	named, warnings := k.goVersion(s.Go)
	k.warnings = append(slices.Clone(k.warnings), warnings...)
	if err := k.toolchains.choose(ctx, k.options.Go, s.GoDirective); err != nil {
		return s, "", nil, err
	}
	s = k.toolchains.adapt(s)
	k.warnings = append(k.warnings, k.toolchains.chosenWarnings(s)...)
	set, err = readPluginSet(ctx, k.goTool, k.options, k.release, k.rules, cmp.Or(k.toolchains.chosen, named))
	return s, named, set, err
}

// goVersion returns the Go version to use, and a warning if the source does not name one.
func (k *releaseBuild) goVersion(named string) (string, []string) {
	if named != "" {
		return named, nil
	}
	return k.rules.Go, []string{fmt.Sprintf("%s does not name a version of Go; Go %s is used", k.release, k.rules.Go)}
}

// download downloads the staging modules and the toolchain at the same time.
func (k *releaseBuild) download(ctx context.Context, s source, named string) (got staged, used toolchain, err error) {
	if _, err := k.goTool.find(ctx); err != nil {
		return staged{}, toolchain{}, err
	}
	version := cmp.Or(k.toolchains.chosen, named)
	err = k.goTool.step(fmt.Sprintf("download Go %s and the staging modules of %s", version, k.release), func() error {
		group, groupCtx := errgroup.WithContext(ctx)
		group.Go(func() (err error) { got, err = k.releases.downloadStaging(groupCtx, k.release, s); return err })
		group.Go(func() (err error) { used, err = k.toolchains.find(groupCtx, named); return err })
		return group.Wait()
	})
	return got, used, err
}

func (k *releaseBuild) moduleRecipe(s source, got staged, used toolchain, set *plugins.Set) (*recipe, error) {
	target := pluginTarget(s, pins(s, k.release.Staging()), k.release.Staging(), used.Used)
	files, err := generateRelease(k.release, k.rules, s, got.GoSum, set, target)
	if err != nil {
		return nil, fmt.Errorf("generate a module for %s: %w", k.release, err)
	}
	maps.Copy(files, k.options.Files)
	r := &recipe{
		info: Info{
			Release: k.release.String(), Go: used.Used, GoNamed: used.Named, GoChosen: used.chosen, GoDirective: s.GoDirective,
			Module: kubernetes + "@" + s.Version, Source: "modules", Date: s.Date,
			Plugins: set.Infos(), Imports: set.Imports(), Updated: s.Updated,
			Warnings: append(k.allWarnings(used, got), set.Warnings(target)...),
		},
		plugins: set, target: target, against: k.release.String(),
		files: files, mod: "mod", tags: buildTags(k.rules), ldflags: linkFlags(k.release, k.rules, moduleStamp(s.Date)),
		explain: func(ctx context.Context, failed *Error) error {
			return k.releases.explainMissing(ctx, k.release, got, failed)
		},
	}
	r.prepare = func(ctx context.Context) (*prepared, error) {
		ready, err := k.compiler.writeModule(ctx, r)
		if err == nil &&
			slices.ContainsFunc(k.programs, func(p Program) bool { return p.Package == apiserverPackage }) {
			err = addAPIServer(ctx, k.compiler, k.release, r, ready)
		}
		return ready, err
	}
	return r, r.setTargets(k.programs, k.options.Platforms)
}

func (k *releaseBuild) allWarnings(used toolchain, got staged) []string {
	warnings := slices.Clone(k.warnings)
	if warning := used.warning(k.release.String()); warning != "" {
		warnings = append(warnings, warning)
	}
	return append(warnings, got.warnings(k.release)...)
}
