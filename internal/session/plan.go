package session

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Inspect inspects the cluster and the node for the scheduler of that name, and the Go version that its release names.
func (s *Session) Inspect(ctx context.Context, name, namespace string) (*inspect.Info, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	requests := countRequests(cfg)
	info, err := s.InspectWith(ctx, cfg, inspect.Options{
		Name: name, SchedulerNamespace: namespace, Usage: profiles.Usage,
		SourceGo: func(ctx context.Context, release versions.Release) (string, error) {
			return build.SourceInfo(ctx, release, build.Environment{CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log})
		},
	})
	if info != nil {
		info.Requests = requests.Load()
	}
	return info, err
}

// Plan inspects the cluster and decides everything that the spec leaves open.
func (s *Session) Plan(ctx context.Context, sp *spec.Spec) (*deploy.Plan, error) {
	_, _, plan, err := s.connectAndPlan(ctx, sp)
	return plan, err
}

// connectAndPlan returns the plan of the spec, and the connection that it was made with.
func (s *Session) connectAndPlan(ctx context.Context, sp *spec.Spec) (*rest.Config, deploy.Deps, *deploy.Plan, error) {
	r, err := s.newRequest(ctx, sp)
	if err != nil {
		return nil, deploy.Deps{}, nil, err
	}
	cfg, deps, err := s.connectDeps()
	if err != nil {
		return nil, deploy.Deps{}, nil, err
	}
	plan, err := s.plan(ctx, cfg, deps, r)
	return cfg, deps, plan, err
}

// PlanForRender is like Plan. It does not use a cluster if offline is set, or if the release is
// given and there is no kubeconfig.
func (s *Session) PlanForRender(ctx context.Context, sp *spec.Spec, offline bool) (*deploy.Plan, error) {
	r, err := s.newRequest(ctx, sp)
	if err != nil {
		return nil, err
	}
	if offline {
		return s.planOffline(ctx, r)
	}
	cfg, deps, err := s.connectDeps()
	switch {
	case errors.Is(err, kubeapi.ErrNoKubeconfig) && sp.Branch != pack.BranchAuto:
		return s.planOffline(ctx, r)
	case err != nil:
		return nil, err
	}
	return s.plan(ctx, cfg, deps, r)
}

// planOffline decides without a cluster. Credentials come from the node's files if there are any.
func (s *Session) planOffline(ctx context.Context, r *request) (*deploy.Plan, error) {
	root, err := s.FindNodeRoot()
	if err != nil {
		return nil, err
	}
	if path, ok := inspect.SchedulerKubeconfig(root); ok && root != "" && r.Options.WantsNodeCredentials() {
		if r.Credentials, err = inspect.ReadNodeCredentials(root, path); err != nil {
			return nil, err
		}
	}
	if err := s.addPlugins(ctx, r); err != nil {
		return nil, err
	}
	return s.decide(ctx, deploy.Deps{}, r)
}

// plan inspects the cluster and decides.
func (s *Session) plan(ctx context.Context, cfg *rest.Config, deps deploy.Deps, r *request) (*deploy.Plan, error) {
	if err := s.prepare(ctx, cfg, r); err != nil {
		return nil, err
	}
	return s.decide(ctx, deps, r)
}

// decide makes the plan and reports it.
func (s *Session) decide(ctx context.Context, deps deploy.Deps, r *request) (*deploy.Plan, error) {
	plan, err := extenders.PlanScheduler(ctx, deps, r.SchedulerDeployment)
	if err == nil {
		s.report(plan)
	}
	return plan, err
}

// prepare adds the state of the cluster, the node and the image to the request.
func (s *Session) prepare(ctx context.Context, cfg *rest.Config, r *request) (err error) {
	if r.Info, err = s.Session.Inspect(ctx, cfg, r.Options.Name, r.Options.Namespace); err != nil {
		return err
	}
	for _, warning := range r.Info.Warnings {
		s.Warn(warning)
	}
	if err := s.readCredentials(ctx, cfg, r); err != nil {
		return err
	}
	if err := s.pinImage(ctx, r); err != nil {
		return err
	}
	return s.addPlugins(ctx, r)
}

// readCredentials adds to the request the credentials of the node, and the address of the API server for a scheduler without them.
func (s *Session) readCredentials(ctx context.Context, cfg *rest.Config, r *request) (err error) {
	// Unless the user asks for it, a key is used for its own cluster only.
	allowed := !r.Info.Credentials.OtherCluster || r.Options.Credentials != deploy.Auto
	if path := r.Info.Credentials.Kubeconfig; path != "" && r.Options.WantsNodeCredentials() && allowed {
		if r.Credentials, err = inspect.ReadNodeCredentials(r.Info.Node.Root, path); err != nil {
			return problem.WithHint(err, "--credentials serviceaccount needs no file of the node")
		}
	}
	if r.Credentials == nil || !r.Options.WantsNodeCredentials() {
		r.Options.APIServer = inspect.APIServerForPods(ctx, cfg)
	}
	return nil
}

// pinImage adds the digest to the name of the image, so that all following steps use the same
// image.
func (s *Session) pinImage(ctx context.Context, r *request) error {
	release, err := deploy.Release(r.Info, r.Options)
	if err != nil {
		return err
	}
	reference := strings.ReplaceAll(r.Options.Image, image.ReleaseInTag, release.String())
	r.Options.Image, err = pack.Pin(ctx, reference, r.Options.PullPolicy, s.Warn)
	return err
}

// addPlugins adds the plugins of the image.
func (s *Session) addPlugins(ctx context.Context, r *request) error {
	release, err := deploy.Release(r.Info, r.Options)
	if err != nil {
		return err
	}
	contents, err := pack.ReadPlugins(ctx, s.Session, r.Options.Image, release, r.plugins)
	if err != nil {
		return err
	}
	s.warnOfPlugins(contents, r.Options.PluginRules != nil)
	r.Options.Plugins, r.Options.Rules = contents.Plugins, contents.Rules
	if contents.Recipe != nil {
		contents.Recipe.Complete(&r.Options.Request.Spec)
	}
	return nil
}

// warnOfPlugins warns of plugins whose permissions the user has to list, unless rules are given.
func (s *Session) warnOfPlugins(contents *pack.Contents, rulesGiven bool) {
	if rulesGiven {
		return
	}
	for _, warning := range contents.Warnings() {
		s.Warn(warning)
	}
}

// report prints the notes and warnings of a plan.
func (s *Session) report(plan *deploy.Plan) {
	for _, note := range plan.Notes {
		s.Note(note)
	}
	for _, warning := range plan.Warnings {
		s.Warn(warning)
	}
}

// SchedulerNames returns the names of the schedulers that pmk-sched deployed.
func (s *Session) SchedulerNames(ctx context.Context) ([]string, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	deployments, err := deps.Finder.Deployments(ctx, "")
	var names []string
	for _, d := range deployments {
		if labels := d.GetLabels(); labels[ownership.LabelName] != ownership.Extender {
			names = append(names, labels[ownership.LabelInstance])
		}
	}
	return names, err
}
