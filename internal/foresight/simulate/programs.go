package simulate

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Programs are the programs for a simulation: data, so that it can run elsewhere.
type Programs struct {
	Scheduler Scheduler `json:"scheduler"`
	// KubeAPIServer and Etcd are paths.
	KubeAPIServer string `json:"kubeAPIServer"`
	Etcd          string `json:"etcd"`
	// Origins are lines about the programs: their versions, origins and digests.
	Origins []string `json:"origins,omitempty"`
}

// Scheduler is a kube-scheduler that is compiled for this machine.
type Scheduler struct {
	Request pack.Scheduler   `json:"request"`
	Release versions.Release `json:"release"`
	// Program is the binary's path, Plugins are the plugins in it.
	Program string            `json:"program"`
	Plugins []profiles.Plugin `json:"plugins,omitempty"`
	// Origin is a line about the program.
	Origin string `json:"origin,omitempty"`
	// Repeatable makes the scheduler examine one node at a time: if its release takes the first of
	// equally good nodes, each simulation then has the same result.
	Repeatable bool `json:"repeatable,omitempty"`
}

// Configuration is a scheduler's configuration.
type Configuration struct {
	YAML []byte
	// Args are its flags, without the flags for the process's files and ports. Profiles are its
	// profiles' names.
	Args, Profiles []string
	// Notes are differences from the scheduler that a deployment runs.
	Notes []string
	// Services are the addresses of the extenders that the simulation itself runs.
	Services []string
}

// set sets a field in the configuration.
func (c *Configuration) set(field string, value any) error {
	var read map[string]any
	err := yaml.Unmarshal(c.YAML, &read)
	if err == nil {
		read[field] = value
		c.YAML, err = yaml.Marshal(read)
	}
	if err != nil {
		return fmt.Errorf("set %s in the configuration: %w", field, err)
	}
	return nil
}

// Compile finds or compiles a simulation's programs. h is the snapshot's header.
func Compile(ctx context.Context, s *session.Session, r pack.Scheduler, h *snapshot.Header) (p Programs, err error) {
	release, err := ReleaseOf(ctx, s, r.Branch, h)
	if err != nil {
		return p, err
	}
	if p.Scheduler, err = CompileScheduler(ctx, s, r, release); err != nil {
		return p, err
	}
	const apiServer = "kube-apiserver"
	request := programs.Request{Release: release, Names: []string{apiServer}}
	if p.Etcd, err = exec.LookPath(programs.Etcd); err != nil || filepath.IsAbs(s.Programs.From) {
		request.Names = append(request.Names, programs.Etcd)
	}
	found, err := pack.Finder(s).Find(ctx, request)
	if err != nil {
		return p, err
	}
	p.KubeAPIServer, p.Origins = found[apiServer].Path, []string{p.Scheduler.Origin}
	for _, name := range request.Names {
		p.Origins = append(p.Origins, found[name].String())
	}
	p.Etcd = cmp.Or(found[programs.Etcd].Path, p.Etcd)
	return p, nil
}

// ReleaseOf returns a branch's release, by default the snapshot's release.
func ReleaseOf(ctx context.Context, s *session.Session, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if branch = h.Release; branch == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3",
				"the snapshot does not have the release of its cluster")
		}
	}
	return pack.ResolveBranch(ctx, s, branch)
}

// CompileScheduler compiles a scheduler, or finds one without plugins.
func CompileScheduler(ctx context.Context, s *session.Session, r pack.Scheduler,
	release versions.Release) (Scheduler, error) {
	compiled, err := pack.Compile(ctx, s, release, r)
	if err != nil {
		return Scheduler{}, err
	}
	r.Name = cmp.Or(r.Name, corev1.DefaultSchedulerName)
	return Scheduler{
		Request: r, Release: release, Program: compiled.Path, Plugins: compiled.Plugins, Origin: compiled.String(),
	}, nil
}

// FindEtcd returns the path to an etcd without libraries, for a release.
func FindEtcd(ctx context.Context, s *session.Session, release versions.Release) (string, error) {
	found, err := pack.Finder(s).Find(ctx, programs.Request{Release: release, Names: []string{programs.Etcd}})
	return found[programs.Etcd].Path, err
}
