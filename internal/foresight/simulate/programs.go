package simulate

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Programs are the programs of a simulation: data, so that it can run elsewhere.
type Programs struct {
	Scheduler Scheduler `json:"scheduler"`
	// KubeAPIServer and Etcd are paths.
	KubeAPIServer string `json:"kubeAPIServer"`
	Etcd          string `json:"etcd"`
}

// Scheduler is a kube-scheduler that is compiled for this machine.
type Scheduler struct {
	Request pack.Scheduler   `json:"request"`
	Release versions.Release `json:"release"`
	// Program is the path of the binary, Plugins are the plugins in it.
	Program string            `json:"program"`
	Plugins []profiles.Plugin `json:"plugins,omitempty"`
}

// Configuration is the configuration of a scheduler.
type Configuration struct {
	YAML []byte
	// Args are more flags, Profiles the names of its profiles.
	Args, Profiles []string
}

// Compile compiles the programs of a simulation. h is the header of the snapshot.
func Compile(ctx context.Context, s *session.Session, r pack.Scheduler, h *snapshot.Header) (p Programs, err error) {
	release, err := ReleaseOf(ctx, s, r.Branch, h)
	if err != nil {
		return p, err
	}
	if p.Scheduler, err = CompileScheduler(ctx, s, r, release); err != nil {
		return p, err
	}
	const program = "kube-apiserver"
	built, err := build.Run(ctx, build.Options{
		Environment: pack.Environment(s), Release: release, Programs: []build.Program{{Name: program}},
	})
	if err != nil {
		return p, err
	}
	if p.KubeAPIServer, err = built.Path(program); err != nil {
		return p, err
	}
	if p.Etcd, err = exec.LookPath("etcd"); err != nil {
		p.Etcd, err = CompileEtcd(ctx, s)
	}
	return p, err
}

// ReleaseOf returns the release of a branch, by default the release of the snapshot.
func ReleaseOf(ctx context.Context, s *session.Session, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if branch = h.Release; branch == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3",
				"the snapshot does not have the release of its cluster")
		}
	}
	return pack.ResolveBranch(ctx, s, branch)
}

// CompileScheduler compiles a scheduler.
func CompileScheduler(ctx context.Context, s *session.Session, r pack.Scheduler,
	release versions.Release) (Scheduler, error) {
	compiled, err := pack.Compile(ctx, s, release, r.Plugins, r.Imports)
	if err != nil {
		return Scheduler{}, err
	}
	r.Name = cmp.Or(r.Name, corev1.DefaultSchedulerName)
	return Scheduler{Request: r, Release: release, Program: compiled.Path, Plugins: compiled.Plugins}, nil
}

// CompileEtcd returns the path of an etcd without libraries.
func CompileEtcd(ctx context.Context, s *session.Session) (string, error) {
	const program = "etcd"
	built, err := build.Module(ctx, build.ModuleOptions{
		Environment: pack.Environment(s), Module: build.EtcdModule, Version: build.EtcdVersion,
		Packages: []build.Program{{Name: program, Package: build.EtcdModule}},
	})
	if err != nil {
		return "", err
	}
	return built.Path(program)
}

// Configure renders the configuration with the path of a kubeconfig in it. insecurePort is a free
// port, for releases that need one.
func (s *Scheduler) Configure(on *session.Session, kubeconfig string, insecurePort int) (*Configuration, error) {
	r := s.Request
	rendered, err := profiles.Render(profiles.Request{
		Release: s.Release, SchedulerName: r.Name, Kubeconfig: kubeconfig, InsecurePort: insecurePort,
		Preset: r.Preset, Source: r.Configuration, SourceName: r.ConfigurationName, Lossy: r.Lossy, Enable: s.Plugins,
	})
	if err != nil {
		return nil, err
	}
	notes, warnings := profiles.SplitNotes(rendered.Notes, r.ConfigurationName)
	for _, note := range notes {
		on.Note(note)
	}
	for _, warning := range warnings {
		on.Warn(warning)
	}
	summary, ok := profiles.Summarize(rendered.YAML)
	if !ok {
		return nil, fmt.Errorf("read rendered configuration of %s: it is not a KubeSchedulerConfiguration", r.Name)
	}
	return &Configuration{YAML: rendered.YAML, Args: rendered.Args, Profiles: summary.Profiles}, nil
}
