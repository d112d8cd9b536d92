//go:build linux

package lab

import (
	"context"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Programs provides the binaries of a lab, static and for this machine.
type Programs interface {
	// Kubernetes returns the paths of the named programs of a release, such as "kubelet", by name.
	Kubernetes(ctx context.Context, r versions.Release, names []string) (map[string]string, error)
	// Module returns the path of the program name of a Go module; pkg is its main package.
	Module(ctx context.Context, module, version, pkg, name string) (string, error)
}

// kwok works with every supported release.
const (
	kwokModule, kwokVersion = "sigs.k8s.io/kwok", "v0.8.0"
	kwokPackage             = kwokModule + "/cmd/kwok"
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

// KubernetesPrograms returns the programs of a release that every lab runs.
func KubernetesPrograms() []string { return append(components(), "kubelet", "kube-proxy", "kubectl") }

// Compiled provides programs that internal/artifact/build compiles and caches in CacheDir. It is
// the default of [Up].
type Compiled struct{ build.Environment }

func (o Options) compiled() Programs {
	return Compiled{build.Environment{CacheDir: o.CacheDir, Env: o.Env, Log: o.Log, OnStep: o.OnStep}}
}

// Kubernetes compiles programs of a release.
func (c Compiled) Kubernetes(ctx context.Context, r versions.Release, names []string) (map[string]string, error) {
	var programs []build.Program
	for _, name := range names {
		programs = append(programs, build.Program{Name: name})
	}
	result, err := build.Run(ctx, build.Options{
		Environment: c.Environment, Release: r, Programs: programs,
	})
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, name := range names {
		if paths[name], err = result.Path(name); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// Module compiles a program of another module.
func (c Compiled) Module(ctx context.Context, module, version, pkg, name string) (string, error) {
	result, err := build.Module(ctx, build.ModuleOptions{
		Environment: c.Environment, Module: module, Version: version,
		Packages: []build.Program{{Name: name, Package: pkg}},
	})
	if err != nil {
		return "", err
	}
	return result.Path(name)
}

func (u *bringUp) findPrograms(context.Context) (err error) {
	u.machine, err = inspectMachine(u.o.Release, u.lab.requiredPrograms(), thisMachine(u.o.Env))
	return err
}

func (u *bringUp) checkMachine(ctx context.Context) error {
	if err := u.findPrograms(ctx); err != nil {
		return err
	}
	return checkInotify("/proc", u.o.Masters*inotifyOfMaster+u.o.Workers*inotifyOfWorker)
}

func (u *bringUp) getPrograms(ctx context.Context) error {
	names := KubernetesPrograms()
	if u.lab.byKubeadm() {
		names = append(names, "kubeadm")
	}
	paths, err := u.o.Programs.Kubernetes(ctx, u.o.Release, names)
	if err != nil {
		return err
	}
	for name, path := range paths {
		u.programs[name] = path
	}
	if err := u.getEtcd(ctx); err != nil {
		return err
	}
	if u.lab.byKubeadm() {
		u.programs[runner], err = u.o.Programs.Module(ctx, runnerModule, runnerVersion, runnerPackage, runner)
		if err != nil {
			return err
		}
	}
	if u.o.Nodes > 0 {
		u.programs["kwok"], err = u.o.Programs.Module(ctx, kwokModule, kwokVersion, kwokPackage, "kwok")
	}
	return err
}

// getEtcd gets the etcd that kubeadm of the release names, or else one that serves the release.
func (u *bringUp) getEtcd(ctx context.Context) (err error) {
	version := build.EtcdVersion
	if u.lab.byKubeadm() {
		if u.images, err = u.listImages(ctx); err != nil {
			return err
		}
		version = u.images.EtcdVersion()
		// etcd has a module that builds from 3.5 on. Debian's etcd is 3.4.
		switch {
		case !strings.HasPrefix(version, "v3.4."):
			u.machine.etcd = ""
		case u.machine.etcd == "":
			return problem.Errorf("apt-get install -y --no-install-recommends etcd-server",
				"kubeadm of %s runs etcd 3.4, which this machine does not have", u.o.Release)
		}
	}
	if u.programs["etcd"] = u.machine.etcd; u.machine.etcd == "" {
		u.programs["etcd"], err = u.o.Programs.Module(ctx, build.EtcdModule, version, build.EtcdModule, "etcd")
	}
	return err
}
