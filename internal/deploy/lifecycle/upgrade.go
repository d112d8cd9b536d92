package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// UpgradeOptions describe a scheduler's upgrade.
type UpgradeOptions struct {
	// Spec names the scheduler and its file. If it has an image, that image was built elsewhere;
	// otherwise the image is built. Its branch is the image's release, or auto for the API server's
	// release.
	Spec *spec.Spec
	// Base and Busybox are the base for the image that is built. If both are empty, it is the former
	// image's base.
	Base, Busybox string
	// Deploy has the options for the rollout.
	Deploy deploy.RunOptions
	// Confirm asks for an image to build whose name comes from the cluster.
	Confirm Confirm
}

// Upgrade describes one scheduler's upgrade. The fields after Due are set only if it is due.
type Upgrade struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Release and Image are deployed, Target is the release to upgrade to.
	Release string `json:"release"`
	Image   string `json:"image"`
	Target  string `json:"target"`
	Due     bool   `json:"due"`
	// NewImage is the image to deploy; Build reports whether upgrade builds it, with Plugins.
	NewImage string   `json:"newImage,omitempty"`
	Build    bool     `json:"build,omitempty"`
	Plugins  []string `json:"plugins,omitempty"`
	// From and To are config APIs. Changes and Warnings describe the configuration's conversion.
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Changes  []string `json:"changes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// KnownProblems are Target's known problems that the scheduler meets.
	KnownProblems []string `json:"knownProblems,omitempty"`
	// Blocked is the reason why the scheduler cannot be upgraded, and Needs are remedies.
	Blocked string   `json:"blocked,omitempty"`
	Needs   []string `json:"needs,omitempty"`
	// Command upgrades it.
	Command string `json:"command,omitempty"`
}

// upgradeRun is one scheduler's upgrade.
type upgradeRun struct {
	*session.Session
	o         UpgradeOptions
	deps      deploy.Deps
	info      *inspect.Info
	installed *deploy.Installed
	revision  int
	target    versions.Release
	report    *Upgrade
	// again deploys the scheduler at the new release, with an image that build makes unless it exists.
	// request is what plan planned.
	again   *spec.Spec
	build   *pack.Request
	request *request
	// gates are notes about feature gates that the target does not have.
	gates []string
}

// newUpgrade inspects the cluster, reads how the scheduler was deployed, and compares its release
// with the target. The run has no plan yet.
func newUpgrade(ctx context.Context, s *session.Session, d deploy.Deps, o UpgradeOptions) (*upgradeRun, error) {
	info, err := s.Inspect(ctx, d.Config, o.Spec.Name, o.Spec.Namespace)
	if err != nil {
		return nil, err
	}
	u := &upgradeRun{Session: s, o: o, deps: d, info: info, target: info.Release}
	last, err := u.lastDeployed(ctx)
	if err != nil {
		return nil, err
	}
	if u.installed, err = deploy.ReadInstalled(last); err != nil {
		return nil, err
	}
	if branch := o.Spec.Branch; branch != pack.BranchAuto && o.Spec.GivesBranch() {
		if u.target, err = pack.ResolveBranch(ctx, s, branch); err != nil {
			return nil, err
		}
	}
	u.revision = last.Number
	u.report = &Upgrade{
		Name: o.Spec.Name, Namespace: o.Spec.Namespace,
		Release: u.installed.Release.String(), Target: u.target.String(), Image: u.installed.Image,
		Due: u.installed.Release.Compare(u.target) != 0,
	}
	return u, nil
}

// lastDeployed returns the scheduler's current revision.
func (u *upgradeRun) lastDeployed(ctx context.Context) (*apply.Revision, error) {
	sp := u.o.Spec
	last, err := u.deps.Cluster.LastDeployed(ctx, sp.Namespace, sp.Name)
	if err != nil || last != nil {
		return last, err
	}
	for _, d := range u.info.Scheduler.Deployed {
		if d.Name == sp.Name && d.Namespace == sp.Namespace {
			return nil, problem.Invalidf("upgrade what Helm installed with a chart of the new release "+
				"(`pmk-sched render chart`), and deploy other schedulers again with their flags or file",
				"scheduler %s in namespace %s has no revision that records how it was deployed", sp.Name, sp.Namespace)
		}
	}
	return nil, notDeployed(ctx, u.deps, sp)
}

// plan decides how the scheduler is deployed at the target, after describeAgain, and completes the
// report. It changes nothing.
func (u *upgradeRun) plan(ctx context.Context) error {
	r, err := newRequest(ctx, u.Session, u.again)
	if err != nil {
		return err
	}
	r.deps, r.Cluster, u.request = u.deps, u.info, r
	if err := r.readCredentials(ctx); err != nil {
		return err
	}
	if err := r.chooseImage(u.Session); err != nil {
		return err
	}
	if err := r.addPlugins(ctx, u.Session); err != nil {
		return err
	}
	plan, err := extenders.PlanScheduler(ctx, u.deps, r.SchedulerDeployment)
	if err != nil {
		return err
	}
	return u.describe(plan, r)
}

// describeAgain sets the spec and the request to build its image.
func (u *upgradeRun) describeAgain(ctx context.Context) (err error) {
	before := *u.installed
	before.Credentials = u.credentials()
	u.again, u.build, u.gates, err = u.o.Again(ctx, u.Session, before, u.target)
	return err
}

// Again returns the spec that deploys a scheduler at another release, the request to build its
// image, which is nil if the image exists, and notes about feature gates that are left out.
func (o UpgradeOptions) Again(
	ctx context.Context, s *session.Session, before deploy.Installed, target versions.Release,
) (again *spec.Spec, build *pack.Request, gates []string, err error) {
	rules, err := versions.Select(target)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := addRecipe(ctx, s, &before); err != nil {
		return nil, nil, nil, err
	}
	if again, err = o.Spec.Again(before, target.String(), rules.Policy); err == nil {
		again, gates, err = again.FitGates(target)
	}
	own := err == nil && again.UsesOwnImage() && before.Request.Spec.UsesOwnImage()
	if err != nil || own || o.Spec.GivenImage() != "" || before.Release == target {
		return again, nil, gates, err
	}
	if again, err = again.WithTarget(before.Image, before.Release.String(), target.String()); err != nil {
		return nil, nil, nil, err
	}
	flags := spec.BuildFlags{}
	o.place(&flags, again.GivenImage())
	if again.RequiresSignature(before.Request.Spec.Image.RequireSignature) {
		return nil, nil, nil, unsignedBuildError(flags.Tag, target.String())
	}
	request, err := again.Build(flags)
	return again, &request, gates, err
}

// place sets the base for the image that is built, and its destination: an image without a registry
// goes to this machine's containerd.
func (o UpgradeOptions) place(build *spec.BuildFlags, name string) {
	build.Tag = name
	if image.IsLocal(name) {
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
		return v1alpha1.Auto // deploy chooses it here, and the API server's address with it
	}
	return mode
}

// describe completes the report.
func (u *upgradeRun) describe(plan *deploy.Plan, r *request) error {
	report, rendered := u.report, plan.Scheduler.Configuration
	report.NewImage, report.From, report.To = plan.Scheduler.Image, u.installed.APIVersion, rendered.APIVersion
	report.Build = u.build != nil
	for _, p := range r.Plugins {
		report.Plugins = append(report.Plugins, p.Name)
	}
	_, _, name := deploy.Configuration(r.Request)
	notes, _ := profiles.SplitNotes(rendered.Notes, cmp.Or(name, "configuration"))
	report.Changes = append(notes, u.gates...)
	report.Warnings = slices.Concat(plan.Warnings, u.again.Pinned(u.report.Target))
	known, err := deploy.KnownProblems(plan)
	if err != nil {
		return err
	}
	for _, k := range known {
		report.KnownProblems = append(report.KnownProblems, k.String())
	}
	report.Command = plan.Command("upgrade")
	return nil
}

// RunUpgrade deploys a scheduler again at the API server's release. It builds the image with the
// same plugins, converts the configuration, rolls out, verifies, and restores the former revision
// if anything fails. It does nothing unless the upgrade is due.
func RunUpgrade(ctx context.Context, s *session.Session, o UpgradeOptions) (*Upgrade, *deploy.Outcome, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, nil, err
	}
	u, err := newUpgrade(ctx, s, d, o)
	if err != nil {
		return nil, nil, err
	}
	if !u.report.Due {
		return u.report, &deploy.Outcome{Revision: u.revision, Changes: apply.ChangeSet{}}, nil
	}
	if err := u.planConfirmed(ctx); err != nil {
		return nil, nil, fmt.Errorf("upgrade %s from %s to %s: %w", u.report.Name, u.report.Release, u.report.Target, err)
	}
	if u.build != nil {
		if _, err := pack.Run(ctx, *u.build, s); err != nil {
			return nil, nil, fmt.Errorf("build %s for %s: %w", u.report.NewImage, u.report.Name, err)
		}
	}
	for _, warning := range u.again.Pinned(u.report.Target) {
		s.Warn(warning)
	}
	for _, note := range u.gates {
		s.Note(note)
	}
	outcome, err := u.deploy(ctx)
	return u.report, outcome, err
}

// planConfirmed plans the upgrade if the user confirms its image's recorded name and code.
func (u *upgradeRun) planConfirmed(ctx context.Context) error {
	if err := u.describeAgain(ctx); err != nil {
		return err
	}
	if u.build != nil {
		if err := u.o.Confirm.Settle(ctx, &u.build.Unconfirmed); err != nil {
			return err
		}
	}
	return u.plan(ctx)
}

// deploy deploys the scheduler at the target, in place of the revision that the plan was made from:
// the planned request with the image, which exists now, and the cluster as it is after the build.
func (u *upgradeRun) deploy(ctx context.Context) (*deploy.Outcome, error) {
	r := u.request
	if err := r.inspect(ctx, u.Session); err != nil {
		return nil, err
	}
	if err := r.requireImages(); err != nil {
		return nil, err
	}
	r.Origin, r.Replaces, r.RunOptions = "upgrade from "+u.report.Release, u.revision, u.o.Deploy
	r.Verify = proof(r.deps, u.o.Deploy)
	_, outcome, err := extenders.DeployScheduler(ctx, r.deps, r.SchedulerDeployment)
	return outcome, err
}
