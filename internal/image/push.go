package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
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
	return "", nil
}
