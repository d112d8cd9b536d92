package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// locateImages adds the digests to the images' names, so that all following steps use the same
// images. It adds their architectures, and the reason why one is missing.
func (r *request) locateImages(ctx context.Context, s *session.Session) error {
	if err := r.chooseImage(s); err != nil {
		return err
	}
	release, err := r.Release()
	if err != nil {
		return err
	}
	r.Image = strings.ReplaceAll(r.Image, image.ReleaseInTag, release.String())
	if r.keepImages {
		if err := r.keepDigests(ctx); err != nil {
			return err
		}
	}
	for _, image := range r.Images() {
		if err := deploy.CheckRepositories(r.deps.Bounds, *image); err != nil {
			return err
		}
	}
	for _, key := range []string{r.Request.Spec.Image.RequireSignature, r.deps.Bounds.Key} {
		if err := r.verifyImages(ctx, key, release); err != nil {
			return err
		}
	}
	if r.Signature == nil || r.Signature.Err == nil {
		located, err := pack.Locate(ctx, pack.LocateRequest{Reference: r.Image, PullPolicy: r.Request.Spec.Image.PullPolicy,
			Here: r.runsHere(), Warn: s.Warn})
		if err != nil {
			return err
		}
		r.Image, r.Architectures, r.MissingImage = located.Name, located.Architectures, located.Missing
	}
	for i := range r.Extenders {
		extender := &r.Extenders[i]
		if err := locateExtender(ctx, s, extender); err != nil {
			return err
		}
		if extender.Sidecar && r.MissingImage == nil {
			r.MissingImage = extender.MissingImage
		}
	}
	return nil
}

// chooseImage chooses the release's own image for a request that names none. A deployed scheduler
// with an image of its own does not lose it.
func (r *request) chooseImage(s *session.Session) (err error) {
	if r.Image != "" {
		return nil
	}
	if r.Former != nil && r.Former.Revision != nil {
		before, err := deploy.ReadInstalled(r.Former.Revision)
		if err != nil {
			return problem.WithHint(fmt.Errorf("keep the image of %s: %w", r.Request.Name, err), "name one with --image")
		}
		if before.Request == nil || !before.Request.Spec.UsesOwnImage() {
			return problem.Invalidf("name it or another one; to return to the release's own image, uninstall the scheduler first",
				"scheduler %s is deployed with an image that was named: --image is required", r.Request.Name)
		}
	}
	release, err := r.Release()
	if err != nil {
		return err
	}
	var why string
	if r.Image, why, err = r.OwnImage(r.Request, release, pack.Finder(s).SchedulerImage(release)); err == nil {
		s.Note(why)
	}
	return err
}

// keepDigests gives the images the digests that images with the same names have in the deployed
// revisions: their tags may have moved since.
func (r *request) keepDigests(ctx context.Context) error {
	revisions := []*apply.Revision{r.Former.Revision}
	for _, o := range r.Extenders {
		last, err := r.deps.Cluster.LastDeployed(ctx, o.Namespace, o.Name)
		if err != nil {
			return err
		}
		revisions = append(revisions, last)
	}
	for _, revision := range revisions {
		if revision == nil {
			continue
		}
		deployed, err := deploy.ImagesOf(revision)
		if err != nil {
			return err
		}
		for _, image := range r.Images() {
			at := slices.IndexFunc(deployed, func(d string) bool { return strings.HasPrefix(d, *image+"@") })
			if at >= 0 {
				*image = deployed[at]
			}
		}
	}
	return nil
}

// locateExtender adds the digest to the name of an extender's image, the image's architectures, and
// the reason why it is missing.
func locateExtender(ctx context.Context, s *session.Session, o *extenders.Options) error {
	located, err := pack.Locate(ctx, pack.LocateRequest{Reference: o.Image, PullPolicy: o.PullPolicy,
		Warn: func(text string) { s.Log.Debug(text) }})
	if err != nil {
		return err
	}
	o.Image, o.Architectures, o.MissingImage = located.Name, located.Architectures, located.Missing
	return nil
}

// runsHere reports whether a replica runs on this machine: a control-plane node of the cluster.
func (r *request) runsHere() bool {
	info, spec := r.Cluster, r.Request.Spec
	return info.Node.ControlPlane && info.Node.Root == "/" && info.Hosted == nil && !info.Credentials.OtherCluster &&
		len(spec.NodeSelector) == 0 && !spec.AnyNode
}
