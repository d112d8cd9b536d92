package replace

import (
	"context"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// requireSignature verifies that the image is signed, if a key is required, and returns the image's
// name with its digest. Without a key in the options it is the key of the former replacement, whose
// image was verified then.
func (p *planner) requireSignature(ctx context.Context, image string) (string, error) {
	former, recorded, err := requiredKey(p.Files)
	if err != nil {
		return "", err
	}
	key, warning := deploy.KeepKey(p.request.Spec.Image.RequireSignature, recorded)
	if warning != "" {
		p.warnf("%s", warning)
	}
	p.request.Spec.Image.RequireSignature = key
	if key == "" || key == recorded && image == former.Image {
		return image, nil
	}
	pinned, err := p.Signed(ctx, signatureOf(image, key, p.info.Release))
	if err != nil {
		return "", err
	}
	p.notef("image %s: signed by the required key", pinned)
	return pinned, nil
}

// signatureOf requires a signature for a default scheduler's image. The release in it has to have
// the API server's minor, as the program.
func signatureOf(image, key string, server versions.Release) pack.SignatureRequest {
	return pack.SignatureRequest{Reference: image, Key: key,
		Release: configcheck.ReleaseCheck{Image: image, Want: server}.Check}
}

// signedForNode verifies that the key that this node's replacement requires, if any, signed an
// extender's image, and returns the image's name with the digest.
func (n *Node) signedForNode(ctx context.Context, image string) (string, error) {
	_, key, err := requiredKey(n.deps.Files)
	if err != nil || key == "" {
		return image, err
	}
	return n.deps.Signed(ctx, pack.SignatureRequest{Reference: image, Key: key})
}

// verifyForNodes verifies the images' signatures for a run through all nodes, whose pods may not
// reach the registry, and adds the digests to their names.
func (n *Node) verifyForNodes(ctx context.Context) (err error) {
	key, _ := deploy.KeepKey(n.o.Request.Spec.Image.RequireSignature, "")
	switch {
	case key == "":
		return nil
	case n.o.Image == "":
		return problem.Invalidf("", "--require-signature with --pod-image requires --image")
	}
	reference := strings.ReplaceAll(n.o.Image, image.ReleaseInTag, n.info.Release.String())
	if n.o.Image, err = n.deps.Signed(ctx, signatureOf(reference, key, n.info.Release)); err != nil {
		return err
	}
	return n.verifyPodImage(ctx, key)
}

// verifyPodImage verifies the signature on pmk-sched's image, which runs in a privileged pod on
// each node, and adds the digest to its name.
func (n *Node) verifyPodImage(ctx context.Context, key string) (err error) {
	n.podImage, err = n.deps.Signed(ctx, pack.SignatureRequest{Reference: n.podImage, Key: key})
	return err
}
