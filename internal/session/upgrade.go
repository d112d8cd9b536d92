package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// UpgradeOptions describe the upgrade of a scheduler.
type UpgradeOptions struct {
	// Spec names the scheduler and its file. If it has an image, that image was built elsewhere;
	// otherwise the image is built. Its branch is the release of the image, or auto for the release
	// of the API server.
	Spec *spec.Spec
	// Base and Busybox are the base of the image that is built. If both are empty, it is the base
	// of the former image.
	Base, Busybox string
	// Deploy is how the scheduler is rolled out.
	Deploy deploy.RunOptions
}

// upgradeRun is the upgrade of one scheduler.
type upgradeRun struct {
	*Session
	o         UpgradeOptions
	cfg       *rest.Config
	deps      deploy.Deps
	info      *inspect.Info
	installed *deploy.Installed
	revision  int
	target    versions.Release
	report    *Upgrade
	// again deploys the scheduler at the new release, with an image that build makes unless it exists.
	again *spec.Spec
	build *pack.Request
}

// newUpgrade reads how the scheduler was deployed, and compares its release with the target. The run has no plan yet.
func (s *Session) newUpgrade(ctx context.Context, cfg *rest.Config, deps deploy.Deps, info *inspect.Info, o UpgradeOptions) (*upgradeRun, error) {
	u := &upgradeRun{Session: s, o: o, cfg: cfg, deps: deps, info: info, target: info.Release}
	last, err := s.lastDeployed(ctx, deps, info, o.Spec)
	if err != nil {
		return nil, err
	}
	if u.installed, err = deploy.ReadInstalled(last); err != nil {
		return nil, err
	}
	if branch := o.Spec.Branch; branch != pack.BranchAuto && o.Spec.GivesBranch() {
		if u.target, err = s.ResolveBranch(ctx, branch); err != nil {
			return nil, err
		}
	}
	u.revision = last.Number
	u.report = &Upgrade{
		Name: o.Spec.Name, Namespace: o.Spec.Namespace, Release: u.installed.Release.String(), Target: u.target.String(), Image: u.installed.Image,
		Due: u.installed.Release.Compare(u.target) != 0,
	}
	return u, nil
}

// lastDeployed returns the current revision of a scheduler.
func (s *Session) lastDeployed(ctx context.Context, deps deploy.Deps, info *inspect.Info, sp *spec.Spec) (*apply.Revision, error) {
	revisions, err := deps.Ledger.Revisions(ctx, sp.Namespace, sp.Name)
	if err != nil {
		return nil, err
	}
	if last := apply.LastDeployed(revisions); last != nil {
		return last, nil
	}
	for _, d := range info.Scheduler.Deployed {
		if d.Name == sp.Name && d.Namespace == sp.Namespace {
			return nil, problem.Invalidf("upgrade what Helm installed with a chart of the new release (`pmk-sched render --helm-chart`), and deploy other schedulers again with their flags or file",
				"scheduler %s in namespace %s has no revision that records how it was deployed", sp.Name, sp.Namespace)
		}
	}
	return nil, notDeployed(ctx, deps, sp)
}

// plan decides how the scheduler is deployed at the target, and completes the report. It changes nothing.
func (u *upgradeRun) plan(ctx context.Context) error {
	if err := u.describeAgain(); err != nil {
		return err
	}
	r, err := u.newRequest(ctx, u.again)
	if err != nil {
		return err
	}
	r.Info = u.info
	if err := u.readCredentials(ctx, u.cfg, r); err != nil {
		return err
	}
	if err := u.addPlugins(ctx, r); err != nil {
		return err
	}
	plan, err := extenders.PlanScheduler(ctx, u.deps, r.SchedulerDeployment)
	if err != nil {
		return err
	}
	return u.describe(plan, r)
}

// describeAgain sets the spec and the request to build its image.
func (u *upgradeRun) describeAgain() error {
	rules, _, err := versions.Select(u.target)
	if err != nil {
		return err
	}
	again, err := u.o.Spec.Again(spec.Deployed{Request: u.installed.Request, Credentials: u.credentials()}, u.report.Target, rules.Policy)
	if err != nil || u.o.Spec.GivenImage() != "" {
		u.again = again
		return err
	}
	if !again.ImageOfFile() {
		again = again.WithImage(inspect.Retag(u.installed.Image, u.report.Release, u.report.Target))
	}
	build := spec.BuildFlags{}
	if u.again, err = u.withTag(again, &build); err != nil {
		return err
	}
	request, err := u.again.Build(build)
	u.build = &request
	return err
}

// withTag names the image that is built.
func (u *upgradeRun) withTag(again *spec.Spec, build *spec.BuildFlags) (*spec.Spec, error) {
	options, err := again.Scheduler()
	if err != nil {
		return nil, err
	}
	u.o.place(build, strings.ReplaceAll(options.Image, image.ReleaseInTag, u.report.Target))
	return again.WithImage(build.Tag), nil
}

// place sets the base of the image that is built, and where it goes: an image without a registry goes to this machine's containerd.
func (o UpgradeOptions) place(build *spec.BuildFlags, image string) {
	build.Tag = image
	if strings.HasPrefix(image, "localhost/") {
		build.Load = []string{"containerd"}
	} else {
		build.Push = true
	}
	if o.Base != "" || o.Busybox != "" {
		build.Base, build.Busybox = o.Base, o.Busybox
	}
}

// credentials returns the credentials to use if none were requested: an upgrade on another machine
// does not change the credentials.
func (u *upgradeRun) credentials() string {
	mode := u.installed.Credentials
	if own := u.info.Credentials; mode == deploy.CredentialsNode && own.Kubeconfig != "" && !own.OtherCluster {
		return deploy.Auto // deploy chooses it here, and the address of the API server with it
	}
	return mode
}

// describe completes the report.
func (u *upgradeRun) describe(plan *deploy.Plan, r *request) error {
	report, rendered := u.report, plan.Scheduler.Configuration
	report.NewImage, report.From, report.To = plan.Scheduler.Image, u.installed.APIVersion, rendered.APIVersion
	report.Build = u.build != nil
	for _, p := range r.Options.Plugins {
		report.Plugins = append(report.Plugins, p.Name)
	}
	notes, _ := profiles.SplitNotes(rendered.Notes, cmp.Or(r.Options.ConfigurationName, "configuration"))
	report.Changes, report.Warnings = notes, slices.Concat(plan.Warnings, u.again.Pinned(u.report.Target))
	known, err := knownProblems(plan)
	if err != nil {
		return err
	}
	for _, outcome := range known {
		if outcome.Detail != "" {
			report.KnownProblems = append(report.KnownProblems, outcome.Detail)
		}
	}
	report.Command = plan.Command("upgrade")
	return nil
}

// Upgrade deploys a scheduler again at the release of the API server. It builds the image with the same plugins, converts the configuration, rolls
// out, verifies, and restores the former revision if anything fails. It does nothing unless the upgrade is due.
func (s *Session) Upgrade(ctx context.Context, o UpgradeOptions) (*Upgrade, *deploy.Outcome, error) {
	cfg, deps, info, err := s.inspectForUpgrade(ctx, o.Spec)
	if err != nil {
		return nil, nil, err
	}
	u, err := s.newUpgrade(ctx, cfg, deps, info, o)
	if err != nil {
		return nil, nil, err
	}
	if !u.report.Due {
		return u.report, &deploy.Outcome{Revision: u.revision, Changes: apply.ChangeSet{}}, nil
	}
	if err := u.plan(ctx); err != nil {
		return nil, nil, fmt.Errorf("upgrade %s from %s to %s: %w", u.report.Name, u.report.Release, u.report.Target, err)
	}
	if u.build != nil {
		if _, err := s.Build(ctx, *u.build); err != nil {
			return nil, nil, fmt.Errorf("build %s for %s: %w", u.report.NewImage, u.report.Name, err)
		}
	}
	for _, warning := range u.again.Pinned(u.report.Target) {
		s.Warn(warning)
	}
	how := o.Deploy
	how.Verify = func(ctx context.Context, plan *deploy.Plan) error {
		return s.verifyUpgrade(ctx, cfg, plan, how.Timeout)
	}
	_, outcome, err := s.deploy(ctx, u.again, how, "upgrade from "+u.report.Release, u.revision)
	return u.report, outcome, err
}

// inspectForUpgrade connects and inspects the cluster for the scheduler of a spec, which may have no name.
func (s *Session) inspectForUpgrade(ctx context.Context, sp *spec.Spec) (*rest.Config, deploy.Deps, *inspect.Info, error) {
	cfg, deps, err := s.connectDeps()
	if err != nil {
		return nil, deps, nil, err
	}
	info, err := s.Session.Inspect(ctx, cfg, sp.Name, sp.Namespace)
	return cfg, deps, info, err
}

// verifyTime is how long the upgraded scheduler may take to bind a pod.
const verifyTime = time.Minute

// verifyUpgrade verifies that the upgraded scheduler binds a pod.
func (s *Session) verifyUpgrade(ctx context.Context, cfg *rest.Config, plan *deploy.Plan, timeout time.Duration) error {
	_, err := verify.Scheduler(ctx, cfg, verify.Options{
		Name: plan.Name, Namespace: plan.Namespace, Timeout: min(cmp.Or(timeout, verifyTime), verifyTime), Log: s.Log,
	})
	return err
}
