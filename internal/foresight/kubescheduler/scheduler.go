// Package kubescheduler runs a kube-scheduler as a process on loopback: it compiles or finds the
// program, renders the configuration and flags that a deployment would have, starts the process,
// and reads its metrics. Code that a cluster has recorded runs in a sandbox.
//
// It also runs services that the scheduler calls as extenders: a [Recorder] records the nodes that
// are left, and a [Breaker] breaks ties.
package kubescheduler

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

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

// Compile compiles a scheduler, or finds one without plugins.
func Compile(ctx context.Context, s *session.Session, r pack.Scheduler, release versions.Release) (Scheduler, error) {
	compiled, err := pack.Compile(ctx, s, release, r)
	if err != nil {
		return Scheduler{}, err
	}
	r.Name = cmp.Or(r.Name, corev1.DefaultSchedulerName)
	return Scheduler{
		Request: r, Release: release, Program: compiled.Path, Plugins: compiled.Plugins, Origin: compiled.String(),
	}, nil
}

// CompileFor compiles a scheduler for a live cluster, by default at the cluster's release.
func CompileFor(ctx context.Context, s *session.Session, cfg *rest.Config, r pack.Scheduler) (Scheduler, error) {
	release, err := inspect.ServerRelease(cfg)
	switch {
	case err != nil:
	case r.Branch != pack.BranchAuto:
		release, err = pack.ResolveBranch(ctx, s, r.Branch)
	default:
		err = s.CheckRelease(release)
	}
	if err != nil {
		return Scheduler{}, err
	}
	return Compile(ctx, s, r, release)
}
