package session

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/shadow"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// ShadowRequest describes the scheduler to run next to a cluster, and for how long.
type ShadowRequest struct {
	Scheduler pack.Scheduler
	// Observed is the name of the scheduler whose pods are observed.
	Observed string
	For      time.Duration
}

// Shadow runs a scheduler on the cluster's own objects. The cluster is only read. If the context ends before, there are both a report and an error.
func (s *Session) Shadow(ctx context.Context, r ShadowRequest) (report *shadow.Report, err error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	scheduler := r.Scheduler
	scheduler.Name = cmp.Or(scheduler.Name, corev1.DefaultSchedulerName)
	release, err := inspect.ServerRelease(cfg)
	if err == nil && scheduler.Branch != pack.BranchAuto {
		release, err = pack.ResolveBranch(ctx, s.Session, scheduler.Branch)
	}
	if err != nil {
		return nil, err
	}
	compiled, err := pack.Compile(ctx, s.Session, release, scheduler.Plugins, scheduler.Imports)
	if err != nil {
		return nil, err
	}
	dir, remove, err := tempdir.Make("shadow")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return shadow.Run(ctx, shadow.Options{
		Config: cfg, Observed: r.Observed, For: r.For, Dir: dir, OnStep: s.OnStep, Log: s.Log,
		Scheduler: simulate.Scheduler{
			Program: compiled.Path, Release: release, Name: scheduler.Name,
			Configuration: func(kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
				return s.simulatedConfiguration(scheduler, release, compiled.Plugins, kubeconfig, insecurePort)
			},
		},
	})
}
