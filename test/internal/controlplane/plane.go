//go:build linux

// Package controlplane runs the API server, schedulers and extenders of a release as processes on loopback, for tests of where pods
// go. Nodes are objects without kubelets, since where a pod is bound is the scheduler's work alone.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Plane is a running API server, with what schedulers and extenders need to reach it.
type Plane struct {
	Release versions.Release
	// Kube has all permissions.
	Kube kubernetes.Interface
	// Kubeconfig is the path of a file that says how to reach the API server, with all permissions.
	Kubeconfig string

	server    *apiserver.Server
	scheduler string
}

// Start starts the API server of a release, which is built unless it is in the cache, and so is the release's kube-scheduler. It ends
// with the test. args are more flags of the API server.
func Start(t testing.TB, release string, args ...string) *Plane {
	t.Helper()
	p, err := start(t.Context(), t.TempDir(), release, args...)
	if p.server != nil {
		t.Cleanup(func() {
			if err := p.server.Close(); err != nil {
				t.Errorf("stop API server: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func start(ctx context.Context, dir, release string, args ...string) (p *Plane, err error) {
	p = &Plane{Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if p.Release, err = versions.Parse(release); err != nil {
		return p, err
	}
	if p.scheduler, err = Build(ctx, build.Options{Release: p.Release}); err != nil {
		return p, err
	}
	binaries, err := apiserver.BinariesOf(ctx, p.Release)
	if err != nil {
		return p, err
	}
	if p.server, err = apiserver.Start(ctx, binaries, args...); err != nil {
		return p, err
	}
	p.Kube, err = kubernetes.NewForConfig(p.server.Config())
	return p, errors.Join(err, p.server.WriteKubeconfig(p.Kubeconfig, ""))
}

// Build builds a kube-scheduler, or finds it in the cache, and returns its path.
func Build(ctx context.Context, o build.Options) (string, error) {
	cache, err := apiserver.CacheDir()
	if err != nil {
		return "", err
	}
	o.CacheDir, o.Env = cache, os.Environ()
	result, err := build.Run(ctx, o)
	if err != nil {
		return "", fmt.Errorf("build kube-scheduler %s: %w", o.Release, err)
	}
	binary, ok := result.Binary(build.KubeScheduler, build.Host())
	if !ok {
		return "", fmt.Errorf("build kube-scheduler %s: no binary for %s", o.Release, build.Host())
	}
	return binary.Path, nil
}
