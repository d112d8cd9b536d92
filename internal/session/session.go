// Package session executes commands. A [Session] connects to the cluster, inspects it and the node,
// turns a [spec.Spec] into a plan, and runs the plan with the packages below it.
package session

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/scaffold"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Session is one run of a command.
type Session struct{ *session.Session }

// Build builds the image that the request describes.
func (s *Session) Build(ctx context.Context, r pack.Request) (*pack.Result, error) {
	r.ClusterRelease = func(context.Context) (versions.Release, error) {
		cfg, err := s.Connect()
		if err != nil {
			return versions.Release{}, err
		}
		return inspect.ServerRelease(cfg)
	}
	return pack.Run(ctx, r, s.Session)
}

// ResolveBranch returns the release of a branch such as v1.24.3, v1.24 or release-1.24, and reports the choice.
func (s *Session) ResolveBranch(ctx context.Context, branch string) (versions.Release, error) {
	return pack.ResolveBranch(ctx, s.Session, branch)
}

// chooseBranch replaces a branch by the tag of its release, unless it is to be found on the cluster.
func (s *Session) chooseBranch(ctx context.Context, branch *string) error {
	if *branch == "" || *branch == pack.BranchAuto {
		return nil
	}
	release, err := s.ResolveBranch(ctx, *branch)
	if err == nil {
		*branch = release.String()
	}
	return err
}

// BundledPlugins describes the plugins that are bundled with pmk-sched.
func (s *Session) BundledPlugins(ctx context.Context) ([]pack.BundledPlugin, error) {
	return pack.BundledPlugins(ctx, s.Session)
}

// NewPlugin creates the module of a new plugin.
func (s *Session) NewPlugin(ctx context.Context, r scaffold.Request) (*scaffold.Result, error) {
	if err := s.chooseBranch(ctx, &r.Branch); err != nil {
		return nil, err
	}
	made, err := scaffold.Plugin(ctx, r, s.Session)
	if err != nil {
		return nil, err
	}
	return made, s.noteBatching(r.Kind, made.Release)
}

// noteBatching notes how a new plugin affects the batching of pods.
func (s *Session) noteBatching(kind string, release versions.Release) error {
	const since = "Kubernetes 1.35 and later"
	switch kind {
	case scaffold.Extender:
		s.Note(since + " do not batch pods while an extender is called: " + profiles.UnbatchedCost)
	case scaffold.Portable:
		s.Note("method Sign returns what of a pod Filter and Score depend on: keep it up to date. Without it " + since + " do not batch the pods of the profile: " + profiles.UnbatchedCost)
	case scaffold.Native:
		rules, _, err := versions.Select(release)
		if err != nil || !rules.Batching {
			return err
		}
		s.Note("method SignPod returns what of a pod Filter depends on: keep it up to date. Without it pods of the profile are not batched: " + profiles.UnbatchedCost)
	}
	return nil
}

// deps returns the dependencies of package deploy.
func (s *Session) deps(cfg *rest.Config) (deploy.Deps, error) {
	client, err := apply.New(cfg, apply.Options{Log: s.Log})
	if err != nil {
		return deploy.Deps{}, err
	}
	return deploy.Deps{
		Applier: client, Ledger: client, Locker: client, Finder: client, Holder: session.Holder(), By: session.User(),
		Preflight: func(ctx context.Context, plan *deploy.Plan) error {
			_, err := s.check(ctx, cfg, plan)
			return err
		},
		Binary: func(ctx context.Context, plan *deploy.Plan, dir string) (configcheck.Binary, error) {
			return pack.FindScheduler(ctx, s.CacheDir, plan.Scheduler.Image, []string{manifest.Program}, dir)
		},
		Warn: s.Warn, Note: s.Note, OnStep: s.OnStep, Log: s.Log,
	}, nil
}

// connectDeps connects and returns the deps.
func (s *Session) connectDeps() (*rest.Config, deploy.Deps, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, deploy.Deps{}, err
	}
	deps, err := s.deps(cfg)
	return cfg, deps, err
}

// preflight checks whether the cluster accepts the plan.
func (s *Session) check(ctx context.Context, cfg *rest.Config, plan *deploy.Plan) ([]preflight.Outcome, error) {
	checks, err := preflight.Checks(cfg, preflight.Options{
		Name: plan.Name, Namespace: plan.Namespace, Image: plan.Scheduler.Image, Objects: plan.Objects,
		Port: plan.Scheduler.Port, TakenPorts: plan.TakenPorts, Endpoints: endpoints(plan), Log: s.Log,
	})
	if err != nil {
		return nil, err
	}
	return preflight.RunAll(ctx, checks, func(o preflight.Outcome) {
		if o.Status == preflight.Warned {
			s.Warn(o.Description + ": " + o.Detail)
		}
	})
}

func endpoints(plan *deploy.Plan) []preflight.Endpoint {
	var list []preflight.Endpoint
	for _, e := range plan.Endpoints {
		list = append(list, preflight.Endpoint(e))
	}
	return list
}
