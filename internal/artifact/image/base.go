package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const userAgent = "pmk-sched"

// candidate is one image of a base, with the platform it is for.
type candidate struct {
	platform v1.Platform
	image    v1.Image
}

type baseImage struct {
	image       v1.Image
	annotations map[string]string // the name of the base if it is from a registry, or nil
}

// resolveBases returns the base for each platform, and its reference by digest if it is in a
// registry.
func resolveBases(
	ctx context.Context, o Options, platforms []string,
) (bases map[string]baseImage, pinned string, err error) {
	if err := o.Base.check(); err != nil {
		return nil, "", err
	}
	if o.Base.Busybox != "" {
		if err := CheckBusybox(o.Base.Busybox, platforms); err != nil {
			return nil, "", err
		}
	}
	if o.Base.Busybox != "" || o.Base.Empty {
		bases = map[string]baseImage{}
		for _, platform := range platforms {
			img, err := newBase(ctx, o.Base.Busybox, platform)
			if err != nil {
				return nil, "", err
			}
			bases[platform] = baseImage{image: img}
		}
		return bases, "", nil
	}
	found, origin, err := o.Base.saved(o.Bases, platforms)
	if err == nil && len(found) == 0 {
		found, origin, err = o.Base.candidates(ctx, o.Keychain)
	}
	if err != nil {
		return nil, "", err
	}
	bases = map[string]baseImage{}
	for _, platform := range platforms {
		c, err := choose(found, platform, "base "+o.Base.String())
		if err != nil {
			return nil, "", err
		}
		bases[platform] = baseImage{image: c.image}
		if origin == nil {
			continue
		}
		digest, err := fetchHead(c.image)
		if err != nil {
			return nil, "", registryError("pull", origin.ref, err)
		}
		annotations := map[string]string{
			annotationBaseName: canonical(origin.ref), annotationBaseDigest: digest.String(),
		}
		bases[platform] = baseImage{image: c.image, annotations: annotations}
	}
	if origin != nil {
		pinned = canonical(origin.ref.Context().Digest(origin.digest.String()))
	}
	return bases, pinned, nil
}

// fetchHead reads the manifest and the configuration of an image in a registry, so that they fail
// here and not when the image is written.
func fetchHead(img v1.Image) (v1.Hash, error) {
	if err := checkConfigSize(img); err != nil {
		return v1.Hash{}, err
	}
	if _, err := img.RawConfigFile(); err != nil {
		return v1.Hash{}, err
	}
	return img.Digest()
}

// String returns the base as the user names it.
func (b Base) String() string {
	return b.Reference + b.Archive + b.Layout + b.Busybox
}

func (b Base) check() error {
	set := 0
	if b.Empty {
		set++
	}
	for _, s := range []string{b.Reference, b.Archive, b.Layout, b.Busybox} {
		if s != "" {
			set++
		}
	}
	if set != 1 {
		return problem.Invalidf("use an image, a docker archive, an OCI layout directory, or a busybox",
			"expected one base, got %d", set)
	}
	return nil
}

// origin is the registry reference at which a base's images were found.
type origin struct {
	ref name.Reference
	// digest is the digest to which ref was resolved, once: a tag may move.
	digest v1.Hash
}

// candidates returns a base's images. The origin is nil unless it is in a registry.
func (b Base) candidates(ctx context.Context, keychain authn.Keychain) ([]candidate, *origin, error) {
	switch {
	case b.Archive != "":
		found, err := archiveCandidates(b.Archive)
		return found, nil, err
	case b.Layout != "":
		found, err := layoutCandidates(b.Layout)
		return found, nil, err
	}
	ref, err := parseReference(b.Reference)
	if err != nil {
		return nil, nil, err
	}
	descriptor, err := remote.Get(ref, remoteOptions(ctx, keychain)...)
	if err != nil {
		return nil, nil, registryError("pull", ref, err)
	}
	found, err := registryCandidates(descriptor)
	if err != nil {
		return nil, nil, registryError("pull", ref, err)
	}
	return found, &origin{ref: ref, digest: descriptor.Digest}, nil
}

func registryCandidates(descriptor *remote.Descriptor) ([]candidate, error) {
	if descriptor.MediaType.IsIndex() {
		index, err := descriptor.ImageIndex()
		if err != nil {
			return nil, err
		}
		return indexCandidates(index)
	}
	img, err := descriptor.Image()
	if err != nil {
		return nil, err
	}
	c, err := registryCandidate(img)
	return []candidate{c}, err
}

// registryCandidate is newCandidate for an image whose manifest has the configuration's size.
func registryCandidate(img v1.Image) (candidate, error) {
	if err := checkConfigSize(img); err != nil {
		return candidate{}, err
	}
	return newCandidate(img)
}

// newCandidate reads the platform from the image's configuration.
func newCandidate(img v1.Image) (candidate, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return candidate{}, fmt.Errorf("read image configuration: %w", err)
	}
	c := candidate{image: img}
	if p := config.Platform(); p != nil {
		c.platform = *p
	}
	return c, nil
}

// choose returns the image for platform. what names the images in the error.
func choose(found []candidate, platform, what string) (candidate, error) {
	want, err := parsePlatform(platform)
	if err != nil {
		return candidate{}, err
	}
	var has []string
	for _, c := range found {
		if c.platform.Satisfies(want) {
			return c, nil
		}
		has = append(has, orUnknown(c.platform.String()))
	}
	if len(has) == 0 {
		return candidate{}, problem.Invalidf("", "%s holds no image", what)
	}
	return candidate{}, problem.Invalidf("choose one of these platforms, or an image that has "+platform,
		"%s has no image for %s; it has %s", what, platform, strings.Join(has, ", "))
}
