package pack

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// projectURL is the URL of the pmk-sched sources.
const projectURL = "https://github.com/pmk-sched/pmk-sched"

type product struct {
	// path is the program's path in the image. Its last element is the program's name.
	path string
	// compile compiles the program, or finds it.
	compile func(ctx context.Context, r Request, s *session.Session) (*build.Result, error)
	// ofRelease reports whether the image has a label with the release.
	ofRelease bool
	// recorded reports whether the image's build is recorded for deploy.
	recorded bool
}

func (r Request) product() product {
	switch {
	case r.Self != "":
		return product{path: image.SelfPath, compile: takeSelf}
	case r.Extender:
		return product{path: image.ExtenderPath, compile: compileExtender, ofRelease: true}
	}
	return product{path: image.SchedulerPath, compile: compileScheduler, ofRelease: true, recorded: true}
}

func (p product) imageOptions(r Request, built *build.Result) image.Options {
	o := image.Options{
		Base: r.Base, Files: map[string][]image.File{}, Entrypoint: []string{p.path}, Keychain: authn.DefaultKeychain,
	}
	for _, b := range built.Binaries {
		platform := b.Platform.String()
		o.Platforms = append(o.Platforms, platform)
		o.Files[platform] = append([]image.File{{Path: p.path, Source: b.Path}}, r.Files...)
	}
	description := image.Description{
		Title: path.Base(p.path), Version: built.Info.Release, URL: projectURL,
		Plugins: strings.Join(PluginNames(built.Info.Plugins), ","),
		Origin:  cmp.Or(built.Info.Module, built.Info.Source),
	}
	if p.ofRelease {
		description.Release = built.Info.Release
	}
	o.Labels = description.Labels()
	o.Annotations = o.Labels
	return o
}

// Environment returns the part of a session that builds use.
func Environment(s *session.Session) build.Environment {
	return build.Environment{CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep, Isolate: isolate}
}

// isolatedTimeout bounds a run of a program by [isolate].
const isolatedTimeout = time.Minute

// isolate runs a program without the rights, the files and the network of the user.
func isolate(ctx context.Context, dir, program string, args ...string) (output string, err error) {
	result, err := sandbox.Run(ctx, dir, sandbox.Program{Path: program, Args: args, Timeout: isolatedTimeout})
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return "", fmt.Errorf("%w: %w", build.ErrNotRun, err)
	case err != nil:
		return "", err
	case result.Status != 0:
		err = fmt.Errorf("exit status %d", result.Status)
	}
	return string(result.Text), err
}

// Finder returns what finds the programs of labs and simulations.
func Finder(s *session.Session) *programs.Finder {
	return &programs.Finder{
		Environment: Environment(s), From: s.Programs.From, Assets: s.Programs.Assets,
		Registry: s.Programs.Registry, Downloads: s.Programs.Downloads, Note: s.Note,
	}
}

func compileScheduler(ctx context.Context, r Request, s *session.Session) (*build.Result, error) {
	release, err := r.release(ctx, s)
	if err != nil {
		return nil, err
	}
	return build.Run(ctx, build.Options{
		Environment: Environment(s), Release: release, Nearest: r.Nearest, Source: r.Source, Go: r.Go, Platforms: r.Platforms,
		Plugins: r.Plugins, Imports: r.Imports, Sources: pmksched.Sources, Keep: r.Keep,
		Vulnerabilities: r.Vulnerabilities,
	})
}

func (r Request) release(ctx context.Context, s *session.Session) (versions.Release, error) {
	if r.Branch != BranchAuto {
		return ResolveBranch(ctx, s, r.Branch)
	}
	cfg, err := s.Connect()
	var release versions.Release
	if err == nil {
		release, err = inspect.ServerRelease(cfg)
	}
	if err != nil {
		return release, fmt.Errorf("ask the cluster for its release (--branch names one without asking): %w", err)
	}
	return release, s.CheckRelease(release)
}

// ResolveBranch returns the release of a branch such as v1.24.3, v1.24 or release-1.24, and reports
// the choice. It refuses releases that [session.Session.CheckRelease] refuses.
func ResolveBranch(ctx context.Context, s *session.Session, branch string) (versions.Release, error) {
	release, note, err := build.ResolveBranch(ctx, branch, Environment(s), s.CheckRelease)
	if note != "" {
		s.Note(note)
	}
	return release, err
}

// ChooseBranch returns the tag of a branch's release, unless the release is to be found on the
// cluster.
func ChooseBranch(ctx context.Context, s *session.Session, branch string) (string, error) {
	if branch == "" || branch == BranchAuto {
		return branch, nil
	}
	release, err := ResolveBranch(ctx, s, branch)
	if err != nil {
		return branch, err
	}
	return release.String(), nil
}

func compileExtender(ctx context.Context, r Request, s *session.Session) (*build.Result, error) {
	return build.Extender(ctx, build.ExtenderOptions{
		Environment: Environment(s), Version: r.Version, Plugins: r.Plugins, Platforms: r.Platforms,
		Sources: pmksched.Sources, GoMod: pmksched.GoMod, GoSum: pmksched.GoSum, Keep: r.Keep,
	})
}

// takeSelf returns the executable of pmk-sched itself, as if it had been compiled.
func takeSelf(_ context.Context, r Request, _ *session.Session) (*build.Result, error) {
	if err := CheckStatic(r.Self); err != nil {
		return nil, err
	}
	return &build.Result{
		Info:     build.Info{Release: r.Version, Go: runtime.Version(), Source: projectURL},
		Binaries: []build.Binary{{Program: path.Base(image.SelfPath), Platform: build.Host(), Path: r.Self}},
	}, nil
}

// CheckStatic refuses a program that needs libraries, which an image may not have.
func CheckStatic(file string) error {
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("pack %s: it is not a Linux program: %w", file, err)
	}
	defer program.Close()
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return problem.Invalidf("build pmk-sched with CGO_ENABLED=0",
			"pack %s: it is dynamically linked, and the image has no libraries", file)
	}
	return nil
}
