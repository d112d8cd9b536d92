//go:build linux

package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Release is the release whose API server is run unless the environment names a binary.
const Release = "v1.24.3"

// Environment variables that name binaries to use.
const (
	EnvKubeAPIServer = "PMK_SCHED_TEST_KUBE_APISERVER"
	EnvEtcd          = "PMK_SCHED_TEST_ETCD"
)

// Binaries are the programs that a Server runs.
type Binaries struct{ KubeAPIServer, Etcd string }

// FindBinaries takes the binaries that the environment names. Otherwise the kube-apiserver of
// [Release] is built, once, into the user's cache directory, and etcd is the one in PATH.
func FindBinaries(ctx context.Context) (Binaries, error) {
	release, err := versions.Parse(Release)
	if err != nil {
		return Binaries{}, err
	}
	return BinariesOf(ctx, release)
}

// BinariesOf is FindBinaries for a release; the environment names the kube-apiserver of [Release]
// only.
func BinariesOf(ctx context.Context, release versions.Release) (Binaries, error) {
	b := Binaries{Etcd: os.Getenv(EnvEtcd)}
	if release.String() == Release {
		b.KubeAPIServer = os.Getenv(EnvKubeAPIServer)
	}
	var err error
	if b.Etcd == "" {
		if b.Etcd, err = exec.LookPath("etcd"); err != nil {
			return b, fmt.Errorf("find etcd: %w (apt-get install etcd-server, or set %s)", err, EnvEtcd)
		}
	}
	if b.KubeAPIServer == "" {
		b.KubeAPIServer, err = Build(ctx, release, "kube-apiserver")
	}
	return b, err
}

// Build builds a program of a release, once, into the user's cache directory, and returns its path.
func Build(ctx context.Context, release versions.Release, program string) (string, error) {
	cache, err := run.CacheDir()
	if err != nil {
		return "", err
	}
	result, err := build.Run(ctx, build.Options{
		Release: release, Programs: []build.Program{{Name: program}},
		Environment: build.Environment{CacheDir: cache, Env: os.Environ()},
	})
	if err != nil {
		return "", fmt.Errorf("build %s of %s: %w (%s names a kube-apiserver of %s)", program, release, err, EnvKubeAPIServer,
			Release)
	}
	binary, ok := result.Binary(program, build.Host())
	if !ok {
		return "", fmt.Errorf("build %s of %s: no binary for %s", program, release, build.Host())
	}
	return binary.Path, nil
}
