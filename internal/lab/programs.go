//go:build linux

package lab

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Programs provides the binaries of a lab, static and for this machine.
type Programs interface {
	// Kubernetes returns the paths of the named programs of a release, such as "kubelet", by name.
	Kubernetes(ctx context.Context, r versions.Release, names []string) (map[string]string, error)
	// Module returns the path of the program name of a Go module; pkg is its main package.
	Module(ctx context.Context, module, version, pkg, name string) (string, error)
}

// Go modules that a lab compiles in addition to Kubernetes. Both work with every
// supported release.
const (
	kwokModule, kwokVersion = "sigs.k8s.io/kwok", "v0.8.0"
	kwokPackage             = kwokModule + "/cmd/kwok"
	etcdModule, etcdVersion = "go.etcd.io/etcd/server/v3", "v3.6.8"
)

// runner is the entrypoint of the images that Kubernetes releases. It is the same program in all of
// them, and its source is part of Kubernetes from 1.23 on.
const (
	runner                      = "go-runner"
	runnerModule, runnerVersion = "k8s.io/component-base", "v0.24.3"
	runnerPackage               = runnerModule + "/logs/kube-log-runner"
)

// components run as containers, the other programs as processes of the node.
func components() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

func kubernetesPrograms() []string { return append(components(), "kubelet", "kube-proxy", "kubectl") }

// Compiled provides programs that internal/build compiles and caches in CacheDir. It is the default
// of [Up].
type Compiled struct {
	CacheDir string
	Env      []string
	Log      *zap.Logger
	OnStep   func(string) func(error)
}

// Kubernetes compiles programs of a release.
func (c Compiled) Kubernetes(ctx context.Context, r versions.Release, names []string) (map[string]string, error) {
	var programs []build.Program
	for _, name := range names {
		programs = append(programs, build.Program{Name: name})
	}
	result, err := build.Run(ctx, build.Options{
		Release: r, Programs: programs, CacheDir: c.CacheDir, Env: c.Env, Log: c.Log, OnStep: c.OnStep,
	})
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, name := range names {
		b, ok := result.Binary(name, build.Host())
		if !ok {
			return nil, fmt.Errorf("build %s %s: the build did not produce it", name, r)
		}
		paths[name] = b.Path
	}
	return paths, nil
}

// Module compiles a program of another module.
func (c Compiled) Module(ctx context.Context, module, version, pkg, name string) (string, error) {
	result, err := build.Module(ctx, build.ModuleOptions{
		Module: module, Version: version, Packages: []build.Program{{Name: name, Package: pkg}},
		CacheDir: c.CacheDir, Env: c.Env, Log: c.Log, OnStep: c.OnStep,
	})
	if err != nil {
		return "", err
	}
	b, ok := result.Binary(name, build.Host())
	if !ok {
		return "", fmt.Errorf("build %s %s: the build did not produce %s", module, version, name)
	}
	return b.Path, nil
}
