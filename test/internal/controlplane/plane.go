//go:build linux

// Package controlplane runs the API server, schedulers and extenders of a release as processes on
// loopback, for tests of where pods go. Nodes are objects without kubelets, since where a pod is
// bound is the scheduler's work alone.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Plane is a running API server, with a client and a kubeconfig for schedulers and extenders.
type Plane struct {
	Release versions.Release
	// Kube has all permissions.
	Kube kubernetes.Interface
	// Kubeconfig is the path of a kubeconfig for the API server, with all permissions.
	Kubeconfig string

	server    *apiserver.Server
	scheduler string
}

// Start starts the API server of a release, which is built unless it is in the cache, and so is the
// release's kube-scheduler. It ends with the test. args are more flags of the API server.
func Start(t testing.TB, release string, args ...string) *Plane {
	t.Helper()
	scheduler := releaseScheduler(t, parse(t, release))
	p := StartAPIServer(t, release, args...)
	p.scheduler = scheduler
	return p
}

// On returns the plane of a running API server of [apiserver.Release], with the release's
// kube-scheduler.
func On(t testing.TB, server *apiserver.Server) *Plane {
	t.Helper()
	p := Of(t, server, apiserver.Release)
	p.scheduler = releaseScheduler(t, p.Release)
	return p
}

func releaseScheduler(t testing.TB, release versions.Release) (path string) {
	t.Helper()
	path, err := Build(t.Context(), build.Options{Release: release})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// StartAPIServer is Start without the kube-scheduler: each [Scheduler] names its Binary.
func StartAPIServer(t testing.TB, release string, args ...string) *Plane {
	t.Helper()
	binaries, err := apiserver.BinariesOf(t.Context(), parse(t, release))
	if err != nil {
		t.Fatal(err)
	}
	return Of(t, apiserver.StartFor(t, binaries, args...), release)
}

// Of returns the plane of a running API server of a release, without the kube-scheduler as
// [StartAPIServer].
func Of(t testing.TB, server *apiserver.Server, release string) *Plane {
	t.Helper()
	p := &Plane{Release: parse(t, release), Kube: server.Client(t), server: server}
	p.Kubeconfig = p.kubeconfig(t, "")
	return p
}

func parse(t testing.TB, release string) versions.Release {
	t.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Server returns the API server.
func (p *Plane) Server() *apiserver.Server { return p.server }

// Config returns the configuration of a client with all permissions.
func (p *Plane) Config() *rest.Config { return p.server.Config() }

// kubeconfig writes a kubeconfig for a user, or with all permissions, and returns its path.
func (p *Plane) kubeconfig(t testing.TB, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.server.WriteKubeconfig(file, user); err != nil {
		t.Fatal(err)
	}
	return file
}

// Build builds the one program of the options, by default the kube-scheduler, or finds it in the
// cache, and returns its path.
func Build(ctx context.Context, o build.Options) (string, error) {
	cache, err := run.CacheDir()
	if err != nil {
		return "", err
	}
	o.CacheDir, o.Env = cache, os.Environ()
	program := build.KubeScheduler
	if len(o.Programs) > 0 {
		program = o.Programs[0].Name
	}
	result, err := build.Run(ctx, o)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", program, o.Release, err)
	}
	binary, ok := result.Binary(program, build.Host())
	if !ok {
		return "", fmt.Errorf("build %s %s: no binary for %s", program, o.Release, build.Host())
	}
	return binary.Path, nil
}
