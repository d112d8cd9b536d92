package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// WriteArchive writes b to file as a docker archive, which "docker load", "ctr images import",
// "kind load image-archive" and similar tools read. The image gets the canonical name of ref, so
// that the kubelet finds it. The file is replaced atomically.
//
// An archive has one platform and no attachments; b with several platforms, or with attachments, is
// an Invalid error.
func WriteArchive(ctx context.Context, b *Built, ref, file string) error {
	if b.Index != nil {
		return problem.Invalidf("write an OCI layout directory, or build one platform at a time",
			"write %s: a docker archive has one platform, the image has %s", file, strings.Join(b.platforms(), ", "))
	}
	if err := b.checkAttached(file); err != nil {
		return err
	}
	return safeio.WriteFile(ctx, file, 0o644, func(f *os.File) error {
		return writeArchive(ctx, b.Images[b.platforms()[0]], ref, f)
	})
}

func writeArchive(ctx context.Context, img v1.Image, ref string, w io.Writer) error {
	tag, err := parseTag(ref)
	if err != nil {
		return err
	}
	if err := tarball.Write(tag, img, safeio.NewWriter(ctx, w)); err != nil {
		return fmt.Errorf("write docker archive of %s: %w", tag, err)
	}
	return nil
}

// platforms lists the platforms that b was built for, sorted.
func (b *Built) platforms() []string {
	var platforms []string
	for p := range b.Images {
		platforms = append(platforms, p)
	}
	slices.Sort(platforms)
	return platforms
}

// host returns the image that runs on this machine.
func (b *Built) host(doing string) (v1.Image, error) {
	for _, p := range b.platforms() {
		if runsOn(hostPlatform(), p) {
			return b.Images[p], nil
		}
	}
	return nil, problem.Invalidf("build for "+hostPlatform()+" too", "%s: expected an image for %s, got %s", doing,
		hostPlatform(), strings.Join(b.platforms(), ", "))
}
