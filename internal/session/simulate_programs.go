package session

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/pack"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/simulate"
	"github.com/pmk-sched/pmk-sched/internal/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// options has the programs compiled.
func (m *simulation) options(ctx context.Context, scheduler spec.Simulated) (o simulate.Options, err error) {
	s := m.s
	scheduler.Name = cmp.Or(scheduler.Name, corev1.DefaultSchedulerName)
	release, err := s.simulatedRelease(ctx, scheduler.Branch, m.header)
	if err != nil {
		return o, err
	}
	compiled, err := pack.Compile(ctx, s.buildEnv(), release, scheduler.Plugins, scheduler.Imports)
	if err != nil {
		return o, err
	}
	o = simulate.Options{Timeout: m.request.Timeout, OnStep: s.OnStep, Log: s.Log}
	if o.KubeAPIServer, err = s.kubeAPIServer(ctx, release); err != nil {
		return o, err
	}
	if o.Etcd, err = s.etcd(ctx); err != nil {
		return o, err
	}
	o.Scheduler = simulate.Scheduler{
		Program: compiled.Path, Release: release, Name: scheduler.Name,
		Configuration: func(kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
			return s.simulatedConfiguration(scheduler, release, compiled.Plugins, kubeconfig, insecurePort)
		},
	}
	return o, nil
}

// simulatedRelease returns the release of a branch, by default that of the snapshot.
func (s *Session) simulatedRelease(ctx context.Context, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if h.Release == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3", "the snapshot does not have the release of its cluster")
		}
		branch = h.Release
	}
	return s.ResolveBranch(ctx, branch)
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
	const program = "etcd"
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
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
func (s *Session) simulatedConfiguration(r spec.Simulated, release versions.Release, plugins []profiles.Plugin, kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
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
	var document struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(rendered.YAML, &document); err != nil {
		return nil, fmt.Errorf("read rendered configuration: %w", err)
	}
	c := &simulate.Configuration{YAML: rendered.YAML, Args: rendered.Args}
	for _, profile := range document.Profiles {
		c.Profiles = append(c.Profiles, profile.SchedulerName)
	}
	return c, nil
}
