package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Keys of the annotations that name an image in an OCI layout. OCI's annotation contains the tag
// and containerd's annotation the whole name, as BuildKit writes them.
const (
	annotationRefName        = "org.opencontainers.image.ref.name"
	annotationContainerdName = "io.containerd.image.name"
)

// WriteLayout writes b, with all its platforms, to the directory dir as an OCI layout, with the
// canonical name of ref.
//
// dir is replaced atomically. It may be missing, empty, or a layout with only an image of the same
// name; anything else is an Invalid error.
func WriteLayout(ctx context.Context, b *Built, ref, dir string) (err error) {
	tag, err := parseTag(ref)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if err := replaceable(dir, tag); err != nil {
		return err
	}
	l, err := stage(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Discard()) }()
	if err := appendTo(ctx, l.path, b, tag); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return l.Commit()
}

// appendTo adds an image with its attachments to a layout.
func appendTo(ctx context.Context, l layout.Path, b *Built, tag name.Tag) error {
	if b.Index != nil {
		// One image at a time, so that a canceled context stops between them.
		for _, p := range b.platforms() {
			if err := errors.Join(ctx.Err(), l.WriteImage(b.Images[p])); err != nil {
				return err
			}
		}
		return errors.Join(l.AppendIndex(b.Index, naming(tag)), b.writeAttached(l), ctx.Err())
	}
	platform, err := parsePlatform(b.platforms()[0])
	if err != nil {
		return err
	}
	img := b.Images[b.platforms()[0]]
	return errors.Join(ctx.Err(), l.AppendImage(img, naming(tag), layout.WithPlatform(platform)), b.writeAttached(l),
		ctx.Err())
}

// writeAttached writes the attachments, and lists them in the layout's index.
func (b *Built) writeAttached(l layout.Path) error {
	for _, a := range b.sortedAttachments() {
		if err := errors.Join(l.WriteImage(a), l.AppendDescriptor(a.descriptor)); err != nil {
			return err
		}
	}
	return nil
}

func replaceable(dir string, tag name.Tag) error {
	const hint = "use a directory that does not exist"
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return problem.Invalidf(hint, "write %s: %w", dir, err)
	case len(entries) == 0:
		return nil
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return problem.Invalidf(hint, "write %s: the directory has files that are not an OCI layout", dir)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return problem.Invalidf(hint, "write %s: cannot read the OCI layout in it: %w", dir, err)
	}
	same := match.Annotation(annotationContainerdName, tag.String())
	for _, d := range manifest.Manifests {
		if !same(d) && !isAttachment(d) {
			return problem.Invalidf(hint, "write %s: it has another image, %s", dir,
				orUnknown(d.Annotations[annotationContainerdName]))
		}
	}
	return nil
}

func swap(staged, dir string) error {
	old := staged + ".old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", dir, err)
	}
	if renamed := os.Rename(staged, dir); renamed != nil {
		if err == nil {
			renamed = errors.Join(renamed, os.Rename(old, dir))
		}
		return fmt.Errorf("replace %s: %w", dir, renamed)
	}
	return os.RemoveAll(old)
}
