package build

import (
	"io/fs"
	"runtime"
	"slices"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// KubeScheduler is the name of the program that Run builds by default.
const KubeScheduler = "kube-scheduler"

// Platform is an operating system and an architecture by their names in Go, such as linux and amd64.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// Host returns the platform of this process.
func Host() Platform { return Platform{OS: runtime.GOOS, Arch: runtime.GOARCH} }

// String returns the platform as container tools write it: "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Program is one main package to compile.
type Program struct {
	// Name is the file name of the binary, such as "kube-apiserver".
	Name string `json:"name"`
	// Package is the import path of the main package. For Run, empty means
	// k8s.io/kubernetes/cmd/<Name>. The main of the kube-scheduler is always generated.
	Package string `json:"package,omitempty"`
}

// Options are the inputs of Run.
type Options struct {
	// Release is the tag of kubernetes/kubernetes to build.
	Release versions.Release
	// Source is where the source comes from: empty for the Go modules, or "git:" followed by the
	// URL of a repository (cloned at the tag) or by the directory of a clone of
	// kubernetes/kubernetes (built as checked out, with uncommitted changes, and not modified).
	Source string
	// Nearest allows the nearest other patch of the same minor if a module of Release does not
	// download. Info names the release that was built.
	Nearest bool
	// Programs to build. If it is empty, the kube-scheduler is built.
	Programs []Program
	// Plugins are compiled into the kube-scheduler. Imports are packages that are imported for
	// their side effects, such as the registration of a scheme of arguments. Both require the
	// release's modules as the source.
	Plugins []plugins.Plugin
	Imports []string
	// Sources contains the directory scheduler of this project's module. Portable plugins require
	// it.
	Sources fs.FS
	// Platforms to build for. If it is empty, the programs are built for the host's platform.
	Platforms []Platform

	// CacheDir is the build cache directory.
	CacheDir string
	// WorkDir is the directory in which the temporary directory is created. If it is empty, the
	// temporary directory is created below CacheDir. It does not change the binary.
	WorkDir string
	// Keep keeps the generated module; Result.Dir is its path.
	Keep bool

	// Env is the whole environment to start from (PATH, HOME, GOPROXY, GOMODCACHE, …). The
	// environment of this process is not used.
	Env []string
	// Log may be nil. The output of go is logged at debug level.
	Log *zap.Logger
	// OnStep is called when a step begins, and the function that it returns when the step ends, with
	// its error. Both may be nil.
	OnStep func(name string) (done func(err error))
}

// ModuleOptions are the inputs of Module.
type ModuleOptions struct {
	// Module is the path of the module, such as "sigs.k8s.io/kwok", and Version its exact version,
	// such as "v0.8.0".
	Module, Version string
	// Packages are the main packages, each with its full import path.
	Packages []Program
	// Platforms to build for. If it is empty, the module is built for the host's platform.
	Platforms []Platform

	// The other fields are as in Options.
	CacheDir, WorkDir string
	Keep              bool
	Env               []string
	Log               *zap.Logger
	OnStep            func(name string) (done func(err error))
}

// SourceOptions are the inputs of functions that only look up or download modules.
type SourceOptions struct {
	// CacheDir keeps the results, so that they are looked up only once.
	CacheDir string
	// Env is the environment to start from, as in Options.
	Env []string
	// Log and OnStep may be nil.
	Log    *zap.Logger
	OnStep func(name string) (done func(err error))
}

// job is the parts of a build. They share one temporary directory and one go command.
type job struct {
	work       *workDir
	goTool     *goTool
	toolchains *toolchains
	releases   *releases
	compiler   *compiler
	git        *gitTool
}

func newJob(cacheDir, workDir string, keep bool, env []string, log *zap.Logger, onStep func(string) func(error)) *job {
	if log == nil {
		log = zap.NewNop()
	}
	r := &runner{log: log, onStep: onStep}
	c := newCache(cacheDir)
	work := newWorkDir(c, workDir)
	tool := &goTool{runner: r, work: work, cache: c, env: slices.Clone(env)}
	return &job{
		work: work, goTool: tool,
		toolchains: &toolchains{goTool: tool},
		releases:   &releases{goTool: tool, patches: &patchSearch{goTool: tool}},
		compiler:   &compiler{goTool: tool, keep: keep, keepIn: workDir},
		git:        &gitTool{runner: r, work: work, env: slices.Clone(env)},
	}
}

// close removes the temporary files of the job and adds the failure to do so to err.
func (j *job) close(err *error) { j.work.close(err) }

func orHost(platforms []Platform) []Platform {
	if len(platforms) == 0 {
		return []Platform{Host()}
	}
	return platforms
}
