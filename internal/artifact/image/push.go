package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PushOptions configure the access to a registry.
type PushOptions struct {
	// Keychain provides the credentials. If it is nil, none are used.
	Keychain authn.Keychain
	// Insecure allows plain HTTP. It is always allowed for a loopback address.
	Insecure bool
}

// Push pushes b to the registry of ref and returns its digest, "sha256:…". It skips blobs that the registry
// has, and moves the tag last.
func Push(ctx context.Context, b *Built, ref string, o PushOptions) (digest string, err error) {
	tag, err := parseTag(ref, o.Insecure)
	if err != nil {
		return "", err
	}
	opts := remoteOptions(ctx, o.Keychain)
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
