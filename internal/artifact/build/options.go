package build

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/versions"
)

// KubeScheduler is the name of the program that Run builds by default.
const KubeScheduler = "kube-scheduler"

// Platform is an operating system and an architecture by their names in Go, such as linux and
// amd64.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// Host returns the platform of this process.
func Host() Platform { return Platform{OS: runtime.GOOS, Arch: runtime.GOARCH} }

// String returns the platform as container tools write it: "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Program is one main package to compile, or a package with tests.
type Program struct {
	// Name is the binary's file name, such as "kube-apiserver".
	Name string `json:"name"`
	// Package is the main package's import path. For Run, empty means k8s.io/kubernetes/cmd/<Name>.
	// The main of the kube-scheduler is always generated.
	Package string `json:"package,omitempty"`
	// Test compiles the package with its tests and benchmarks to a program that runs them
	// (go test -c), such as k8s.io/kubernetes/test/e2e.
	Test bool `json:"test,omitempty"`
	// Unstamped leaves the release's version out of the binary, as upstream's own tests are compiled.
	Unstamped bool `json:"unstamped,omitempty"`
}

// Environment is the part of a machine that builds use.
type Environment struct {
	// CacheDir is the build cache directory. Required.
	CacheDir string
	// Env is the whole environment to start from (PATH, HOME, GOPROXY, GOMODCACHE, …). The
	// environment of this process is not used.
	Env []string
	// Log may be nil. The output of go is logged at debug level.
	Log *zap.Logger
	// OnStep may be nil.
	OnStep steps.OnStep
	// Isolate runs a program with plugins or imports, whose code other people may have written, and
	// returns its output. dir is a directory for its files. The error is ErrNotRun if this machine
	// cannot isolate it: then it is not run. If Isolate is nil, such a program runs as the user.
	Isolate func(ctx context.Context, dir, program string, args ...string) (output string, err error)
}

// ErrNotRun is returned by [Environment.Isolate].
var ErrNotRun = errors.New("the program cannot be isolated on this machine")

// Options are the inputs of Run.
type Options struct {
	Environment
	// Release is the tag of kubernetes/kubernetes to build.
	Release versions.Release
	// Source is the source's origin: empty for the Go modules, or "git:" followed by a repository URL
	// (cloned at the tag) or the directory of a kubernetes/kubernetes clone (built as checked out,
	// with uncommitted changes, and not modified).
	Source string
	// Nearest allows the nearest other patch in the same minor if a module in Release does not
	// download. Info names the release that was built.
	Nearest bool
	// Go is the Go version to compile with: "1.26.8", a minor for its newest patch, or NewestGo. If it
	// is empty, it is the version that the release names. GODEBUG keeps the release's defaults.
	Go string
	// Programs to build. If it is empty, the kube-scheduler is built.
	Programs []Program
	// Plugins are compiled into the kube-scheduler. Imports are packages that are imported for their
	// side effects, such as registering a scheme for arguments. Both require the release's modules as
	// the source.
	Plugins []plugins.Plugin
	Imports []string
	// Sources contains the directory scheduler of this project's module. Portable plugins require it.
	Sources fs.FS
	// Files are added to the generated module, by slash-separated path. Those of the directory
	// SchedulerDir belong to the package of the kube-scheduler, whose function plugins returns the
	// plugins.
	Files map[string][]byte
	// Platforms to build for. If it is empty, the programs are built for the host's platform.
	Platforms []Platform

	// Vulnerabilities is the directory of a vulnerability database in vuln.go.dev format. The
	// kube-scheduler is checked for its entries. If it is empty, nothing is checked.
	Vulnerabilities string
	// Keep keeps the generated module; Result.Dir is its path.
	Keep bool
}

// ModuleOptions are the inputs of Module.
type ModuleOptions struct {
	Environment
	// Module is the module's path, such as "sigs.k8s.io/kwok", and Version its exact version, such as
	// "v0.8.0".
	Module, Version string
	// Go is the oldest Go version to compile with. If it is empty, only the module's go line counts.
	Go string
	// Packages are the main packages, each with its full import path.
	Packages []Program
	// Platforms to build for. If it is empty, the module is built for the host's platform.
	Platforms []Platform
}

// job is the parts of a build. They share one temporary directory and one go command.
type job struct {
	*workDir
	goTool     *goTool
	toolchains *toolchains
	releases   *releases
	compiler   *compiler
	git        *gitTool
}

// newJob returns a job, which the caller closes.
func newJob(e Environment) (*job, error) {
	if e.CacheDir == "" {
		return nil, problem.Invalidf("", "a build cache directory is required")
	}
	if e.Log == nil {
		e.Log = zap.NewNop()
	}
	r := &runner{log: e.Log, onStep: e.OnStep}
	c := newCache(e.CacheDir)
	work := &workDir{cache: c}
	tool := &goTool{runner: r, work: work, cache: c, env: slices.Clone(e.Env)}
	return &job{
		workDir: work, goTool: tool,
		toolchains: &toolchains{goTool: tool},
		releases:   &releases{goTool: tool},
		compiler:   &compiler{goTool: tool, isolate: e.Isolate},
		git:        &gitTool{runner: r, work: work, env: slices.Clone(e.Env)},
	}, nil
}

func orHost(platforms []Platform) []Platform {
	if len(platforms) == 0 {
		return []Platform{Host()}
	}
	return platforms
}

// EtcdModule is the Go module of etcd, and its main package. EtcdVersion works with the API servers
// of all supported releases.
const (
	EtcdModule  = "go.etcd.io/etcd/server/v3"
	EtcdVersion = "v3.6.8"
)
