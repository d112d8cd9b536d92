package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// indexedName is the scheduler name in an index's configurations for a spec without a name. A
// configuration with one profile is renamed when it is rendered.
const indexedName = "custom-scheduler"

// ReleasesOptions are options for [BuildReleases].
type ReleasesOptions struct {
	// Branches are the releases to build.
	Branches []string
	// Build has the flags for build. At most one archive is allowed, for all images.
	Build spec.BuildFlags
	// Index is the release index's file.
	Index string
}

// BuiltReleases is the result of [BuildReleases].
type BuiltReleases struct {
	// Index is the index's file, Artifact its reference by digest in the registry if it was pushed.
	Index    string         `json:"index"`
	Artifact string         `json:"artifact,omitempty"`
	Releases []*pack.Result `json:"releases"`
}

// BuildReleases builds the image for each branch, one after the other, and writes the release index
// when all are complete. Configurations are rendered for all releases before the first is compiled.
func BuildReleases(
	ctx context.Context, s *session.Session, sp *spec.Spec, o ReleasesOptions,
) (_ *BuiltReleases, err error) {
	requests, index, err := planReleases(ctx, s, sp, o)
	if err != nil {
		return nil, err
	}
	var archive *image.Layout
	if len(o.Build.Archives) > 0 {
		if archive, err = image.NewLayout(o.Build.Archives[0]); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, archive.Discard()) }()
	}
	built := &BuiltReleases{Index: o.Index}
	for i, request := range requests {
		request.Archives, request.Layout = nil, archive
		result, err := pack.Run(ctx, request, s)
		if err != nil {
			return nil, fmt.Errorf("build release %s: %w", index.Releases[i].Release, err)
		}
		index.Releases[i].Image, index.Releases[i].Inputs = result.Reference, result.Inputs
		if request.Push {
			index.Releases[i].Image = pack.Repository(result.Reference) + "@" + result.Digest
		}
		built.Releases = append(built.Releases, result)
	}
	if err := index.Validate(); err != nil {
		return nil, fmt.Errorf("write the release index: %w", err)
	}
	if archive != nil {
		if err := archive.Commit(); err != nil {
			return nil, err
		}
	}
	if o.Build.Push {
		repository := pack.Repository(built.Releases[0].Reference)
		if built.Artifact, err = pack.PushReleases(ctx, s, index, repository, o.Build.SignKey); err != nil {
			return nil, err
		}
	}
	return built, pack.WriteReleases(ctx, o.Index, index)
}

// planReleases returns the request to build each release, and the index without images.
func planReleases(
	ctx context.Context, s *session.Session, sp *spec.Spec, o ReleasesOptions,
) ([]pack.Request, *v1alpha1.SchedulerReleases, error) {
	if len(o.Build.Archives) > 1 || len(o.Build.Archives) == 1 && strings.HasSuffix(o.Build.Archives[0], ".tar") {
		return nil, nil, problem.Invalidf("use --archive DIRECTORY once: one OCI layout has all images",
			"--branches and --archive %s exclude each other", strings.Join(o.Build.Archives, ", "))
	}
	index := &v1alpha1.SchedulerReleases{}
	var requests []pack.Request
	for _, branch := range o.Branches {
		of := sp.WithBranch(branch)
		release, err := planRelease(ctx, s, of)
		if err != nil {
			return nil, nil, fmt.Errorf("release %s: %w", branch, err)
		}
		request, err := of.Build(o.Build)
		if err != nil {
			return nil, nil, err
		}
		if len(o.Branches) > 1 && !strings.Contains(request.Tag, image.ReleaseInTag) {
			return nil, nil, problem.Invalidf("write "+image.ReleaseInTag+" in the tag, for example --tag "+
				"registry.example.com/kube-scheduler:"+image.ReleaseInTag, "the images of all releases have the name %s", request.Tag)
		}
		if slices.ContainsFunc(index.Releases,
			func(other v1alpha1.SchedulerRelease) bool { return other.Release == release.Release }) {
			return nil, nil, problem.Invalidf("", "--branches has release %s twice", release.Release)
		}
		index.Releases, requests = append(index.Releases, *release), append(requests, request)
	}
	return requests, index, nil
}

// planRelease returns a release's entry without its image. It sets the spec's branch to the
// release.
func planRelease(ctx context.Context, s *session.Session, sp *spec.Spec) (*v1alpha1.SchedulerRelease, error) {
	release, err := pack.ResolveBranch(ctx, s, sp.Branch)
	if err != nil {
		return nil, err
	}
	sp.Branch = release.String()
	of, notes, err := sp.FitGates(release)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		s.Note(release.String() + ": " + note)
	}
	of = of.Named(cmp.Or(sp.Name, indexedName), sp.Namespace).
		WithImage("localhost/" + indexedName + ":" + image.ReleaseInTag) // the image does not exist yet
	r, err := newRequest(ctx, s, of)
	if err != nil {
		return nil, err
	}
	spec := &r.Request.Spec
	if len(r.Extenders) > 0 || spec.Configuration.PolicyConfigMap {
		return nil, problem.Invalidf("give extenders a urlPrefix, and convert a Policy with `pmk-sched profile convert`",
			"a release index cannot have an extender that pmk-sched deploys, or a legacy Policy")
	}
	if err := r.addPlugins(ctx, s); err != nil {
		return nil, err
	}
	spec.Credentials, spec.AnyNode, spec.NodeSelector = deploy.CredentialsServiceAccount, true, nil
	plan, err := deploy.NewPlan(r.Request, r.Facts)
	if err != nil {
		return nil, err
	}
	for _, warning := range plan.Warnings {
		s.Warn(plan.Release.String() + ": " + warning)
	}
	entry := &v1alpha1.SchedulerRelease{
		Minor: plan.Release.MinorString(), Release: plan.Release.String(),
		Configuration: v1alpha1.Document(plan.Scheduler.Configuration.YAML), Rules: plan.Scheduler.PluginRules,
	}
	for _, p := range r.Plugins {
		entry.Plugins = append(entry.Plugins, p.Name)
	}
	for _, arg := range slices.Concat(plan.Scheduler.Configuration.Args, spec.Args) {
		// In a pod network, the kubelet cannot probe the pod's loopback address.
		if f, err := profiles.ParseFlag(arg); err != nil || f.Name != "bind-address" {
			entry.Args = append(entry.Args, arg)
		}
	}
	return entry, nil
}

// PlanReleases returns the spec's plan for each release in an index. It does not use a cluster.
// Image, configuration, flags and permissions come from the index.
func PlanReleases(
	ctx context.Context, s *session.Session, sp *spec.Spec, index *v1alpha1.SchedulerReleases,
) ([]*deploy.Plan, error) {
	var plans []*deploy.Plan
	for _, release := range index.Releases {
		r, err := newRequest(ctx, s, sp.WithBranch(release.Release).WithImage(release.Image))
		if err != nil {
			return nil, err
		}
		spec := &r.Request.Spec
		// The index was built with the file's configuration, extenders, flags and permissions.
		spec.Configuration, spec.Extenders, spec.Args, spec.RBAC.Rules = v1alpha1.Configuration{}, nil, nil, nil
		release.ApplyTo(spec)
		spec.Credentials, spec.Configuration.File = deploy.CredentialsServiceAccount, "the release index"
		for _, name := range release.Plugins {
			r.Plugins = append(r.Plugins, profiles.Plugin{Name: name, Enable: []string{}})
		}
		plan, err := deploy.NewPlan(r.Request, r.Facts)
		if err != nil {
			return nil, fmt.Errorf("release %s: %w", release.Release, err)
		}
		plans = append(plans, plan)
	}
	return plans, nil
}
