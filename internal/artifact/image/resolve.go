package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Resolve adds to an image name the digest that its tag has in the registry now: NAME:TAG@sha256:….
// The result names the same image after the tag has moved. A name with a digest does not change.
func Resolve(ctx context.Context, ref string, keychain authn.Keychain) (string, error) {
	parsed, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	if _, pinned := parsed.(name.Digest); pinned {
		return ref, nil
	}
	found, err := remote.Get(parsed, remoteOptions(ctx, keychain)...)
	if err != nil {
		return "", registryError("read the digest of", parsed, err)
	}
	return ref + "@" + found.Digest.String(), nil
}

// SameRepository reports whether two image names are of one repository, regardless of their tags
// and digests.
func SameRepository(a, b string) (bool, error) {
	first, err := parseReference(a)
	if err != nil {
		return false, err
	}
	second, err := parseReference(b)
	if err != nil {
		return false, err
	}
	return first.Context().Name() == second.Context().Name(), nil
}
