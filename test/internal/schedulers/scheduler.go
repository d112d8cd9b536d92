// Package schedulers runs the kube-schedulers of releases for tests: they read configuration files,
// without a cluster.
package schedulers

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Scheduler is the kube-scheduler of one release as pmk-sched builds it.
type Scheduler struct {
	Release versions.Release
	Rules   versions.Rules
	// Path is the binary, Size how many bytes it has, Cached whether it was there already.
	Path   string
	Size   int64
	Cached bool
	// Info describes the build.
	Info build.Info

	dir    string // for files that runs read and write
	cache  string
	reads  sync.Map // of *reading
	effect struct {
		once    sync.Once
		program string
		err     error
	}
}

// EnvGo names the version of Go to compile the schedulers with, as in build.Options.
const EnvGo = "PMK_SCHED_GO"

// Build returns the kube-scheduler of a release, compiled with pmk-sched's own cache. dir is an
// empty directory for the files of its runs. onStep may be nil.
func Build(ctx context.Context, release versions.Release, dir string,
	onStep func(string) func(error)) (*Scheduler, error) {
	rules, err := versions.Select(release)
	if err != nil {
		return nil, err
	}
	cache, err := run.CacheDir()
	if err != nil {
		return nil, err
	}
	result, err := build.Run(ctx, build.Options{
		Environment: build.Environment{CacheDir: cache, Env: os.Environ(), OnStep: onStep}, Release: release,
		Go: os.Getenv(EnvGo),
	})
	if err != nil {
		return nil, err
	}
	binary, found := result.Binary(build.KubeScheduler, build.Host())
	if !found {
		return nil, fmt.Errorf("build kube-scheduler %s: no binary for %s", release, build.Host())
	}
	s := &Scheduler{
		Release: release, Rules: rules, Path: binary.Path, Size: binary.Size, Cached: result.Cached, Info: result.Info,
		dir: dir, cache: cache,
	}
	return s, s.writeFiles()
}
