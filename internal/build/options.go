package build

import (
	"io/fs"
	"runtime"
	"slices"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// KubeScheduler is the name of the program that Run builds unless told otherwise.
const KubeScheduler = "kube-scheduler"

// Platform is an operating system and an architecture in Go's names, such as
// linux and amd64.
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
	// Package is the import path of the main package. Run takes empty as
	// k8s.io/kubernetes/cmd/<Name>. The kube-scheduler's main is always
	// generated, whatever stands here.
	Package string `json:"package,omitempty"`
}

// Options says what Run builds, from what, and where.
type Options struct {
	// Release is the tag of kubernetes/kubernetes to build.
	Release versions.Release
	// Source is where its source comes from: empty for the Go modules, or
	// "git:" followed by the URL of a repository (cloned at the tag) or by a
	// folder that holds a clone of kubernetes/kubernetes (built as it is,
	// and not modified).
	Source string
	// Nearest allows another patch of the same minor, the nearest that can
	// be built, where a module of Release does not download. Info says which
	// one it was.
	Nearest bool
	// Programs to build; empty means the kube-scheduler.
	Programs []Program
	// Plugins are compiled into the kube-scheduler, and Imports are packages
	// imported for what they register, such as a scheme of arguments. Both need
	// the release's modules as source.
	Plugins []plugins.Plugin
	Imports []string
	// Sources holds the folder scheduler of this program's own module, which
	// portable plugins are compiled against. Only they need it.
	Sources fs.FS
	// Platforms to build for; empty means the host's.
	Platforms []Platform

	// CacheDir is where binaries and what was learned of releases are kept.
	CacheDir string
	// WorkDir is where the temporary folder is made; empty means below
	// CacheDir. Its place does not change a single byte of the result.
	WorkDir string
	// Keep leaves the generated module behind; Result.Dir says where.
	Keep bool

	// Env is the environment to start from (PATH, HOME, GOPROXY,
	// GOMODCACHE, …). It is the whole environment: that of this process is
	// never looked at.
	Env []string
	// Log may be nil. The output of go is logged at debug level.
	Log *zap.Logger
	// OnStep is told of every step when it begins; the function it returns is
	// called with the step's error when it ends. Both may be nil.
	OnStep func(name string) (done func(err error))
}

// ModuleOptions says which mains of an ordinary module Module builds.
type ModuleOptions struct {
	// Module is the module's path, such as "sigs.k8s.io/kwok", and Version
	// its exact version, such as "v0.8.0".
	Module, Version string
	// Packages are the mains, each with its full import path.
	Packages []Program
	// Platforms to build for; empty means the host's.
	Platforms []Platform

	// The rest is as in Options.
	CacheDir, WorkDir string
	Keep              bool
	Env               []string
	Log               *zap.Logger
	OnStep            func(name string) (done func(err error))
}

// SourceOptions says where SourceInfo looks.
type SourceOptions struct {
	// CacheDir keeps what was learned, so that it is asked for only once.
	CacheDir string
	// Env is the environment to start from, as in Options.
	Env []string
	// Log and OnStep may be nil.
	Log    *zap.Logger
	OnStep func(name string) (done func(err error))
}

// job is what every kind of build has in common: where it works and whom it tells.
type job struct {
	golang *goCommand
	space  *workspace
	cache  cache
	work   string
	keep   bool
	// nearest says that an error need not name another patch.
	nearest bool
	env     []string
	log     *zap.Logger
	onStep  func(name string) (done func(err error))
}

func newJob(cacheDir, workDir string, keep bool, env []string, log *zap.Logger, onStep func(string) func(error)) *job {
	if log == nil {
		log = zap.NewNop()
	}
	return &job{cache: newCache(cacheDir), work: workDir, keep: keep, env: slices.Clone(env), log: log, onStep: onStep}
}

// step runs do as a step with the given name.
func (j *job) step(name string, do func() error) (err error) {
	var done func(error)
	if j.onStep != nil {
		done = j.onStep(name)
	}
	err = do()
	if done != nil {
		done(err)
	}
	return err
}

func orHost(platforms []Platform) []Platform {
	if len(platforms) == 0 {
		return []Platform{Host()}
	}
	return platforms
}
