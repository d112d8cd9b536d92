// Package lifecycle executes the commands for second schedulers and their extenders: it connects to
// a session's cluster, inspects it, plans a [spec.Spec], and runs the plan.
package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Inspect inspects the cluster and the node for the scheduler with that name, and the Go version
// that its release names.
func Inspect(ctx context.Context, s *session.Session, name, namespace string) (*inspect.Info, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	requests := kubeapi.CountRequests(cfg)
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

// request is a scheduler to deploy, with its extenders and the plugins in its image.
type request struct {
	extenders.SchedulerDeployment
	plugins []pack.Plugin
	deps    deploy.Deps
	// anyKey is set if the user asks for this node's credentials, also for another cluster.
	anyKey bool
	// keepImages is set if images with the names of the deployed ones are the deployed ones.
	keepImages bool
}

// newRequest resolves the spec's branch and returns the deployment that the spec describes.
func newRequest(ctx context.Context, s *session.Session, sp *spec.Spec) (*request, error) {
	r := &request{anyKey: sp.AsksForCredentials(), keepImages: sp.KeepsImages()}
	var err error
	if sp.Branch, err = pack.ChooseBranch(ctx, s, sp.Branch); err != nil {
		return nil, err
	}
	if r.Request, r.Facts, err = sp.Scheduler(); err != nil {
		return nil, err
	}
	if r.Extenders, err = sp.Extenders(); err != nil {
		return nil, err
	}
	r.plugins, err = sp.Plugins()
	return r, err
}

// prepare returns the spec's request with the state of the cluster, the node and the image.
func prepare(ctx context.Context, s *session.Session, sp *spec.Spec) (*request, error) {
	r, err := newRequest(ctx, s, sp)
	if err != nil {
		return nil, err
	}
	if r.deps, err = deploy.Connect(s); err != nil {
		return nil, err
	}
	return r.complete(ctx, s, sp)
}

// complete returns the request with the deployed scheduler's settings that it keeps, and with the
// state of the cluster, the node and the image.
func (r *request) complete(ctx context.Context, s *session.Session, sp *spec.Spec) (*request, error) {
	kept, err := keepDeployed(ctx, s, r.deps, sp)
	if err != nil {
		// A revision that cannot be read has a requirement too, which needs another flag.
		return nil, errors.Join(r.keepRequirement(ctx, s), err)
	}
	if kept != sp {
		d := r.deps
		if r, err = newRequest(ctx, s, kept); err != nil {
			return nil, err
		}
		r.deps = d
	}
	return r, r.inspect(ctx, s)
}

// inspect adds the state of the cluster, the node and the image.
func (r *request) inspect(ctx context.Context, s *session.Session) (err error) {
	if r.Cluster, err = inspectFor(ctx, s, r.deps, r.Request.Name, r.Request.Namespace); err != nil {
		return err
	}
	if err := r.readCredentials(ctx); err != nil {
		return err
	}
	if err := r.keepRequirement(ctx, s); err != nil {
		return err
	}
	if r.Former, err = extenders.ReadFormer(ctx, r.deps, r.Request.Namespace, r.Request.Name); err != nil {
		return err
	}
	if err := r.locateImages(ctx, s); err != nil {
		return err
	}
	if r.Request.Spec.RBAC.AuthenticationReader == nil {
		r.SystemClosed, err = preflight.SystemClosed(ctx, r.deps.Config,
			rbac.Options{Name: r.Request.Name, Namespace: r.Request.Namespace}, s.Log)
		if err != nil {
			return err
		}
	}
	return r.addPlugins(ctx, s)
}

// inspectFor inspects the cluster for a scheduler, and prints the warnings.
func inspectFor(
	ctx context.Context, s *session.Session, d deploy.Deps, name, namespace string,
) (*inspect.Info, error) {
	info, err := s.Inspect(ctx, d.Config, name, namespace)
	if err != nil {
		return nil, err
	}
	for _, warning := range info.Warnings {
		s.Warn(warning)
	}
	return info, nil
}

// readCredentials adds the node's credentials, and the API server's address for a scheduler without
// them.
func (r *request) readCredentials(ctx context.Context) (err error) {
	// Unless the user asks for it, a key is used for its own cluster only.
	allowed := !r.Cluster.Credentials.OtherCluster || r.anyKey
	if path := r.Cluster.Credentials.Kubeconfig; path != "" && r.WantsNodeCredentials(r.Request) && allowed {
		if r.Node, err = inspect.ReadNodeCredentials(r.Cluster.Node.Root, path); err != nil {
			return problem.WithHint(err, "--credentials serviceaccount needs no file of the node")
		}
	}
	if r.Node == nil || !r.WantsNodeCredentials(r.Request) {
		r.APIServer = inspect.APIServerForPods(ctx, r.deps.Config)
	}
	return nil
}

// addPlugins adds the image's plugins.
func (r *request) addPlugins(ctx context.Context, s *session.Session) error {
	release, err := r.Release()
	if err != nil {
		return err
	}
	contents, err := pack.ReadPlugins(ctx, s, r.Image, release, r.plugins)
	if err != nil {
		return err
	}
	if r.Request.Spec.RBAC.Rules == nil {
		contents.Warn(s)
	}
	r.Plugins, r.Rules = contents.Plugins, contents.Rules
	// A request for the release's own image stays one if this machine built an image of that name.
	if contents.Recipe != nil && !r.Request.Spec.UsesOwnImage() {
		contents.Recipe.Complete(&r.Request.Spec)
	}
	return nil
}

// plan makes the plan and reports it.
func (r *request) plan(ctx context.Context) (*deploy.Plan, error) {
	plan, err := extenders.PlanScheduler(ctx, r.deps, r.SchedulerDeployment)
	if err == nil {
		r.deps.Report(plan)
	}
	return plan, err
}

// Plan returns the spec's plan for render. If offline is set, it uses no network: a branch of a
// minor is the tested release. If there is no kubeconfig and the release is given, it uses no
// cluster.
func Plan(ctx context.Context, s *session.Session, sp *spec.Spec, offline bool) (*deploy.Plan, error) {
	if release, ok := versions.TestedPatch(sp.Branch); ok && offline {
		s.Note(fmt.Sprintf("using %s, which pmk-sched is tested with: --offline does not look for the newest patch of %s",
			release, release.MinorString()))
		sp.Branch = release.String()
	}
	r, err := newRequest(ctx, s, sp)
	if err != nil {
		return nil, err
	}
	if !offline {
		r.deps, err = deploy.Connect(s)
		offline = errors.Is(err, kubeapi.ErrNoKubeconfig) && sp.Branch != pack.BranchAuto
	}
	switch {
	case offline:
		r.deps = deploy.Deps{Warn: s.Warn, Note: s.Note}
		err = r.readNode(ctx, s)
	case err == nil:
		r, err = r.complete(ctx, s, sp)
	}
	if err != nil {
		return nil, err
	}
	if missing := r.MissingImage; missing != nil {
		s.Warn(missing.Error())
	}
	return r.plan(ctx)
}

// Validate returns an error for a spec that no cluster accepts: it makes the plan that Deploy
// makes, without a cluster.
func Validate(ctx context.Context, s *session.Session, sp *spec.Spec) error {
	r, err := newRequest(ctx, s, sp)
	if err != nil {
		return err
	}
	if err := r.leaveSignature(); err != nil {
		return err
	}
	if err := r.chooseImage(s.WithoutMessages()); err != nil {
		return err
	}
	_, err = extenders.PlanScheduler(ctx, deploy.Deps{}, r.SchedulerDeployment)
	return err
}

// readNode adds the node's credentials, if this is one, and the image's plugins.
func (r *request) readNode(ctx context.Context, s *session.Session) error {
	if err := r.leaveSignature(); err != nil {
		return err
	}
	root, err := s.FindNodeRoot()
	if err != nil {
		return err
	}
	if path, ok := inspect.SchedulerKubeconfig(root); ok && root != "" && r.WantsNodeCredentials(r.Request) {
		if r.Node, err = inspect.ReadNodeCredentials(root, path); err != nil {
			return err
		}
	}
	if err := r.chooseImage(s); err != nil {
		return err
	}
	return r.addPlugins(ctx, s)
}

// SchedulerNames returns the names of the schedulers that pmk-sched deployed.
func SchedulerNames(ctx context.Context, s *session.Session) ([]string, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	deployments, err := d.Cluster.Deployments(ctx, "")
	var names []string
	for _, o := range deployments {
		if labels := o.GetLabels(); labels[ownership.LabelName] != ownership.Extender {
			names = append(names, labels[ownership.LabelInstance])
		}
	}
	return names, err
}
