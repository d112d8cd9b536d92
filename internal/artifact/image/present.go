package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
)

// InContainerd reports whether the containerd that listens on socket ("" means DefaultContainerdSocket) has an
// image for the kubelet with that name.
func InContainerd(ctx context.Context, ref, socket string) (bool, error) {
	canonical, err := CanonicalName(ref)
	if err != nil {
		return false, err
	}
	var names bytes.Buffer
	if err := newContainerd(socket).run(ctx, nil, &names, "images", "ls", "-q", "name=="+canonical); err != nil {
		return false, fmt.Errorf("find %s in containerd: %w", canonical, err)
	}
	return strings.TrimSpace(names.String()) == canonical, nil
}

// PullContainerd pulls an image for this machine from its registry into containerd, under the name that the
// kubelet uses.
func PullContainerd(ctx context.Context, ref, socket string, keychain authn.Keychain) error {
	canonical, err := CanonicalName(ref)
	if err != nil {
		return err
	}
	base := Base{Reference: ref}
	found, _, err := base.candidates(ctx, keychain)
	if err != nil {
		return err
	}
	c, err := choose(found, hostPlatform(), "image "+ref)
	if err != nil {
		return err
	}
	archive := func(w io.Writer) error { return writeArchive(ctx, c.image, ref, w) }
	if err := newContainerd(socket).run(ctx, archive, nil, "images", "import", "-"); err != nil {
		return fmt.Errorf("pull %s into containerd: %w", canonical, err)
	}
	return nil
}
