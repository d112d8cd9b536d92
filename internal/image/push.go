package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PushOptions says how to reach a registry.
type PushOptions struct {
	// Keychain finds the credentials; nil means none.
	Keychain authn.Keychain
	// Insecure allows plain HTTP. Registries on a loopback address are spoken to
	// in plain HTTP without it.
	Insecure bool
}

// Push writes b to the registry that ref names and returns the digest to pull it
// by, "sha256:…". Blobs the registry has are not sent again; the tag is moved last.
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
