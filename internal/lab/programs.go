//go:build linux

package lab

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
)

// Programs finds a lab's binaries, static and for this machine. *programs.Finder does.
type Programs interface {
	Find(ctx context.Context, r programs.Request) (map[string]programs.Program, error)
}

// runner is the entrypoint of images in kubeadm clusters.
const runner = programs.Runner

// components run as containers, the other programs as processes of the node.
func components() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

func (o Options) environment() build.Environment {
	return build.Environment{CacheDir: o.CacheDir, Env: o.Env, Log: o.Log, OnStep: o.OnStep}
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
	u.lab.state.Programs = nil // programs of the release before an upgrade
	names := programs.Kubernetes()
	if u.lab.byKubeadm() {
		names = append(names, "kubeadm", programs.Runner)
	}
	if err := u.find(ctx, programs.Request{Release: u.o.Release, Names: names}); err != nil {
		return err
	}
	if err := u.getEtcd(ctx); err != nil || u.o.Nodes == 0 {
		return err
	}
	return u.find(ctx, programs.Request{Release: u.o.Release, Names: []string{programs.Kwok}})
}

// find finds programs and records them.
func (u *bringUp) find(ctx context.Context, r programs.Request) error {
	found, err := u.o.Programs.Find(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range r.Names {
		u.programs[name] = found[name].Path
		u.lab.state.Programs = append(u.lab.state.Programs, found[name])
	}
	return nil
}

// getEtcd gets the etcd that kubeadm of the release names, or else one that serves the release.
func (u *bringUp) getEtcd(ctx context.Context) (err error) {
	r := programs.Request{Release: u.o.Release, Names: []string{programs.Etcd}}
	if u.lab.byKubeadm() {
		if u.images, err = kubeadm.ListImages(ctx, u.programs["kubeadm"], u.o.Release, u.machine.path); err != nil {
			return err
		}
		r.EtcdVersion = u.images.EtcdVersion()
	} else if u.machine.etcd != "" {
		u.programs[programs.Etcd] = u.machine.etcd
		return nil
	}
	return u.find(ctx, r)
}
