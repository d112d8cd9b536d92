package replace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

// DefaultUpgrade is the upgrade for this node's replaced default scheduler.
type DefaultUpgrade struct {
	*Node `json:"-"`
	// Name of the node.
	Name string `json:"node"`
	// Release and Image of the replacement. Target is the API server's release.
	Release string `json:"release"`
	Image   string `json:"image"`
	Target  string `json:"target"`
	// Due is set if Release and Target differ, or if the node's files have changed since the
	// replacement.
	Due   bool     `json:"due"`
	Drift []string `json:"drift,omitempty"`
	// NewImage is the image to run; Build reports whether Run builds it. Configuration is the file
	// with the replacement's configuration, if it is kept.
	NewImage      string `json:"newImage,omitempty"`
	Build         bool   `json:"build,omitempty"`
	Configuration string `json:"configuration,omitempty"`

	// current is the image in the manifest. kept is set if the replacement did not change the default
	// scheduler's image.
	current string
	kept    bool
	// recordedKey is the public key that the replacement requires, or empty.
	recordedKey string
	plugins     []pack.Plugin
	build       *pack.Request
}

// PlanDefaultUpgrade inspects the cluster and this node, and plans the upgrade for its replaced
// default scheduler. It changes nothing.
func PlanDefaultUpgrade(
	ctx context.Context, s *session.Session, o lifecycle.UpgradeOptions,
) (*DefaultUpgrade, error) {
	u := &DefaultUpgrade{Node: &Node{s: s}}
	if err := u.inspect(ctx); err != nil {
		return nil, err
	}
	before, err := u.replacement(ctx)
	if err != nil {
		return nil, err
	}
	if err := u.compare(before); err != nil || !u.Due {
		return u, err
	}
	if u.o, err = replacement(o.Spec); err != nil {
		return nil, err
	}
	if u.plugins, err = o.Spec.Plugins(); err != nil {
		return nil, err
	}
	u.o.Node, u.o.Timeout, u.o.StableFor = before.Node, o.Deploy.Timeout, o.Deploy.StableFor
	u.o.FitGates = true
	if err := u.keepConfiguration(before); err != nil {
		return nil, err
	}
	if err := u.chooseImage(ctx, o); err != nil {
		return nil, err
	}
	u.NewImage = u.o.Image
	return u, nil
}

// replacement returns the record of this node's replacement.
func (u *DefaultUpgrade) replacement(ctx context.Context) (*staticpod.Backup, error) {
	list, err := staticpod.Backups(u.deps.Files)
	if err != nil {
		return nil, err
	}
	b := staticpod.Current(list)
	switch {
	case b == nil:
		return nil,
			problem.Invalidf(
				"run it on a control-plane node where `pmk-sched replace` did; `pmk-sched upgrade check` lists them",
				"the default scheduler of this node is not replaced")
	case b.State == staticpod.Started:
		return nil, problem.Invalidf("run `pmk-sched replace` again with the same flags, or `pmk-sched restore`",
			"the replacement of the default scheduler of node %s is unfinished", b.Node)
	}
	status := &Status{}
	if err := status.readNodes(ctx, u.deps, true); err != nil && !errors.As(err, new(*DriftError)) {
		return nil, err
	}
	for _, d := range status.Here.Drift {
		u.Drift = append(u.Drift, d.Path+": "+d.What)
	}
	u.recordedKey = b.RequireSignature
	return b, u.readImages(b)
}

// readImages reads the image in the manifest, and whether the original manifest had the
// replacement's image.
func (u *DefaultUpgrade) readImages(b *staticpod.Backup) error {
	original, err := b.Load(b.Manifest(), staticpod.OriginalCopy)
	if err != nil {
		return err
	}
	before, err := imageIn(b, original)
	if err != nil {
		return err
	}
	u.kept = before == b.Image
	now, err := u.deps.Files.Read(b.Manifest().Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	u.current, err = imageIn(b, now)
	return err
}

// imageIn returns the scheduler's image in a manifest.
func imageIn(b *staticpod.Backup, file *staticpod.File) (string, error) {
	m, err := staticpod.Parse(b.Manifest().Path, file.Data)
	if err != nil {
		return "", err
	}
	container, err := m.Container(b.Container)
	if err != nil {
		return "", err
	}
	return container.Image, nil
}

// compare compares the replacement with the API server's release.
func (u *DefaultUpgrade) compare(b *staticpod.Backup) error {
	release, ok := inspect.ImageRelease(b.Image)
	if !ok {
		return problem.Invalidf("use `pmk-sched replace --image REFERENCE`",
			"the release of image %s is unknown: its tag has none", b.Image)
	}
	u.Name, u.Image, u.Release, u.Target = b.Node, b.Image, release.String(), u.info.Release.String()
	u.Due = release.Compare(u.info.Release) != 0 || len(u.Drift) > 0
	return nil
}

// keepConfiguration takes the replacement's configuration, unless the spec has one. A manifest that
// was written again does not name it.
func (u *DefaultUpgrade) keepConfiguration(b *staticpod.Backup) error {
	if u.o.Preset != "" || len(u.o.Configuration) > 0 {
		return nil
	}
	file, err := u.deps.Files.Read(b.ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.Invalidf("use `pmk-sched replace` with --config or --preset",
			"the configuration of the replacement, %s, is missing", b.ConfigFile)
	}
	if err != nil {
		return err
	}
	u.Configuration = b.ConfigFile
	u.o.Configuration, u.o.ConfigurationName = file.Data, b.ConfigFile
	return nil
}

// chooseImage takes the given image, or else the former image at the API server's release. The
// image is built unless the manifest has it. If only the configuration was replaced, kubeadm writes
// the new release's image, whose repository may be another: from 1.25 on it is registry.k8s.io.
func (u *DefaultUpgrade) chooseImage(ctx context.Context, o lifecycle.UpgradeOptions) error {
	if release, ok := inspect.ImageRelease(u.current); ok && u.kept && u.o.Image == "" && release.String() == u.Target {
		u.o.Image = u.current
		return nil
	}
	ofFile := u.o.Image != "" && o.Spec.GivenImage() == ""
	if u.o.Image = u.goal("").Image; u.o.Image == "" {
		u.o.Image = inspect.Retag(u.Image, u.Release, u.Target)
	}
	if o.Spec.GivenImage() != "" || u.o.Image == u.current || u.Release == u.Target {
		return nil
	}
	again, err := o.Spec.Again(deploy.Installed{}, u.Target, false)
	if err != nil {
		return err
	}
	if !ofFile {
		recipe, err := u.recipe(ctx)
		if err != nil {
			return err
		}
		again = again.WithSource(recipe)
	}
	if again.RequiresSignature(u.recordedKey) {
		return lifecycle.UnsignedBuildError(u.o.Image, u.Target)
	}
	if u.plugins, err = again.Plugins(); err != nil {
		return err
	}
	build := spec.BuildFlags{}
	o.Place(&build, u.o.Image)
	request, err := again.Build(build)
	u.build, u.Build = &request, true
	return err
}

// recipe returns how the former image was built on this machine.
func (u *DefaultUpgrade) recipe(ctx context.Context) (*v1alpha1.Recipe, error) {
	release, err := versions.Parse(u.Release)
	if err != nil {
		return nil, err
	}
	contents, err := pack.ReadPlugins(ctx, u.s, u.Image, release, nil)
	if err != nil {
		return nil, err
	}
	if contents.Recipe == nil {
		return nil,
			problem.Invalidf(fmt.Sprintf(
				"build it where %s was built, with the same flags and `--branch %s --tag %s`, and add `--image %s`", u.Image,
				u.Target, u.o.Image, u.o.Image),
				"how image %s was built is unknown on this machine", u.Image)
	}
	return contents.Recipe, nil
}

// Run builds the image if that is needed, and replaces this node's default scheduler again.
func (u *DefaultUpgrade) Run(ctx context.Context) (*Outcome, error) {
	if u.build != nil {
		if _, err := pack.Run(ctx, *u.build, u.s); err != nil {
			return nil, fmt.Errorf("build %s: %w", u.NewImage, err)
		}
	}
	if err := u.addPlugins(ctx, u.plugins); err != nil {
		return nil, err
	}
	return u.Node.Run(ctx)
}
