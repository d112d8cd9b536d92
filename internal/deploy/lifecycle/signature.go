package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// keepRequirement keeps the key that the deployed revision requires, unless the request has another
// one, or lifts the requirement. It is an error if that revision's requirement cannot be read and
// the request has none.
func (r *request) keepRequirement(ctx context.Context, s *session.Session) error {
	image := &r.Request.Spec.Image
	last, err := r.deps.ReadLast(ctx, r.Request.Namespace, r.Request.Name)
	if err != nil {
		return err
	}
	recorded := ""
	if last != nil {
		if recorded, err = deploy.RequiredKey(last); err != nil && image.RequireSignature == "" {
			return fmt.Errorf("read the required signature of %s: %w", r.Request.Name, err)
		}
	}
	key, warning := deploy.KeepKey(image.RequireSignature, recorded)
	if err != nil && key == "" {
		warning = "the image needs no signature: --require-signature none lifts a recorded requirement that cannot be read"
	}
	switch {
	case warning != "":
		s.Warn(warning)
	case key != "" && image.RequireSignature == "":
		s.Note("the image must be signed, as the deployed revision requires; --require-signature none lifts that")
	}
	image.RequireSignature = key
	return nil
}

// verifyImages verifies that the key, if any, signed all images, and adds the digests to their
// names, so that all following steps use the verified images. A second key has to have signed them
// in addition to the first one, which is recorded.
func (r *request) verifyImages(ctx context.Context, key string, release versions.Release) error {
	if key == "" {
		return nil
	}
	_, id, err := pack.ParseKey([]byte(key))
	if err != nil {
		return err
	}
	if r.Signature == nil {
		r.Signature = &deploy.Signature{Key: id}
	}
	signature := r.Signature
	for _, image := range r.Images() {
		required := pack.SignatureRequest{Reference: *image, Key: key}
		if image == &r.Image {
			required.Release = configcheck.ReleaseCheck{Image: *image, Want: release, Exact: true, Branch: true}.Check
		}
		pinned, err := r.deps.Signed(ctx, required)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			signature.Err = errors.Join(signature.Err, err)
			continue
		}
		*image = pinned
	}
	return nil
}

// requireImages returns an error if an image is not signed as required, or if an image is missing:
// nothing is deployed then, the scheduler's extenders included.
func (r *request) requireImages() error {
	if s := r.Signature; s != nil && s.Err != nil {
		return s.Err
	}
	for _, o := range r.Extenders {
		if o.MissingImage != nil {
			return o.MissingImage
		}
	}
	return r.MissingImage
}

// leaveSignature records a required signature that is not verified, for a plan without a cluster.
func (r *request) leaveSignature() error {
	image := &r.Request.Spec.Image
	if image.RequireSignature, _ = deploy.KeepKey(image.RequireSignature, ""); image.RequireSignature == "" {
		return nil
	}
	_, id, err := pack.ParseKey([]byte(image.RequireSignature))
	r.Signature = &deploy.Signature{Key: id, Err: errors.New("the plan is made without a cluster")}
	return err
}

// unsignedBuildError returns the error for an upgrade that would build an image without a signature
// although one is required.
func unsignedBuildError(image, release string) error {
	return problem.Invalidf(fmt.Sprintf("sign it with `pmk-sched build --branch %s --tag %s --push --sign-key KEY`, "+
		"with the plugins of the scheduler, and add --image %s", release, image, image),
		"the image must be signed, and upgrade would build it without a signature")
}
