package session

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// preparedScheduler is a scheduler with the programs of a simulation: data, so that it can be simulated elsewhere.
type preparedScheduler struct {
	Scheduler pack.Scheduler    `json:"scheduler"`
	Release   versions.Release  `json:"release"`
	Plugins   []profiles.Plugin `json:"plugins,omitempty"`
	// Program, KubeAPIServer and Etcd are paths.
	Program       string `json:"program"`
	KubeAPIServer string `json:"kubeAPIServer"`
	Etcd          string `json:"etcd"`
	// source of the scheduler, for messages. It is empty if there is only one scheduler.
	source string
}

// prepareScheduler compiles the programs. h is the header of the snapshot.
func (s *Session) prepareScheduler(ctx context.Context, scheduler pack.Scheduler, h *snapshot.Header) (p preparedScheduler, err error) {
	scheduler.Name = cmp.Or(scheduler.Name, corev1.DefaultSchedulerName)
	release, err := s.simulatedRelease(ctx, scheduler.Branch, h)
	if err != nil {
		return p, err
	}
	compiled, err := pack.Compile(ctx, s.Session, release, scheduler.Plugins, scheduler.Imports)
	if err != nil {
		return p, err
	}
	p = preparedScheduler{Scheduler: scheduler, Release: release, Plugins: compiled.Plugins, Program: compiled.Path}
	if p.KubeAPIServer, err = s.kubeAPIServer(ctx, release); err != nil {
		return p, err
	}
	p.Etcd, err = s.etcd(ctx)
	return p, err
}

// simulationOptions returns the options to simulate a scheduler with.
func (s *Session) simulationOptions(p preparedScheduler, timeout time.Duration) simulate.Options {
	return simulate.Options{
		Timeout: timeout, OnStep: s.OnStep, Log: s.Log, KubeAPIServer: p.KubeAPIServer, Etcd: p.Etcd,
		Scheduler: simulate.Scheduler{
			Program: p.Program, Release: p.Release, Name: p.Scheduler.Name,
			Configuration: func(kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
				return s.simulatedConfiguration(p.Scheduler, p.Release, p.Plugins, kubeconfig, insecurePort)
			},
		},
	}
}

// options compiles the programs and returns the options of the simulation.
func (m *simulation) options(ctx context.Context, scheduler pack.Scheduler) (simulate.Options, error) {
	prepared, err := m.s.prepareScheduler(ctx, scheduler, m.header)
	if err != nil {
		return simulate.Options{}, err
	}
	return m.s.simulationOptions(prepared, m.request.Timeout), nil
}

// simulatedRelease returns the release of a branch, by default the release of the snapshot.
func (s *Session) simulatedRelease(ctx context.Context, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if h.Release == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3", "the snapshot does not have the release of its cluster")
		}
		branch = h.Release
	}
	return pack.ResolveBranch(ctx, s.Session, branch)
}

// kubeAPIServer returns the path of the kube-apiserver of a release.
func (s *Session) kubeAPIServer(ctx context.Context, release versions.Release) (string, error) {
	const program = "kube-apiserver"
	built, err := build.Run(ctx, build.Options{
		Release: release, Programs: []build.Program{{Name: program}}, CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
	return programPath(built, err, program)
}

// etcd returns the path of the etcd in PATH, or compiles one.
func (s *Session) etcd(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("etcd"); err == nil {
		return path, nil
	}
	return s.compiledEtcd(ctx)
}

// compiledEtcd returns the path of an etcd without libraries.
func (s *Session) compiledEtcd(ctx context.Context) (string, error) {
	const program = "etcd"
	built, err := build.Module(ctx, build.ModuleOptions{
		Module: build.EtcdModule, Version: build.EtcdVersion, Packages: []build.Program{{Name: program, Package: build.EtcdModule}},
		CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log, OnStep: s.OnStep,
	})
	return programPath(built, err, program)
}

func programPath(built *build.Result, err error, program string) (string, error) {
	if err != nil {
		return "", err
	}
	binary, ok := built.Binary(program, build.Host())
	if !ok {
		return "", fmt.Errorf("build %s: no binary for %s", program, build.Host())
	}
	return binary.Path, nil
}

// simulatedConfiguration renders the configuration of the scheduler for the simulation.
func (s *Session) simulatedConfiguration(r pack.Scheduler, release versions.Release, plugins []profiles.Plugin, kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
	rendered, err := profiles.Render(profiles.Request{
		Release: release, SchedulerName: r.Name, Kubeconfig: kubeconfig, InsecurePort: insecurePort,
		Preset: r.Preset, Source: r.Configuration, SourceName: r.ConfigurationName, Lossy: r.Lossy, Enable: plugins,
	})
	if err != nil {
		return nil, err
	}
	notes, warnings := profiles.SplitNotes(rendered.Notes, r.ConfigurationName)
	for _, note := range notes {
		s.Note(note)
	}
	for _, warning := range warnings {
		s.Warn(warning)
	}
	summary, _ := profiles.Summarize(rendered.YAML)
	return &simulate.Configuration{YAML: rendered.YAML, Args: rendered.Args, Profiles: summary.Profiles}, nil
}
