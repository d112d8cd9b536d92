package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push pushes b to the registry of ref and returns its digest, "sha256:…". It skips blobs that the
// registry has, and moves the tag last. Without a keychain it uses no credentials.
func Push(ctx context.Context, b *Built, ref string, keychain authn.Keychain) (digest string, err error) {
	tag, err := parseTag(ref)
	if err != nil {
		return "", err
	}
	opts := remoteOptions(ctx, keychain)
	if b.Index != nil {
		err = remote.WriteIndex(tag, b.Index, opts...)
	} else {
		err = remote.Write(tag, b.Images[b.platforms()[0]], opts...)
	}
	if err != nil {
		return "", registryError("push", tag, err)
	}
	return b.Digest, nil
}
