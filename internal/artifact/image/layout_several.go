package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Layout is an OCI layout of several images that is being written. Images share their layers.
type Layout struct {
	dir string
	// path is the temporary directory that becomes dir.
	path layout.Path
}

// NewLayout begins an OCI layout at dir, which must not exist or be empty. It is written by
// [Layout.Commit], or removed by [Layout.Discard].
func NewLayout(dir string) (*Layout, error) {
	dir = filepath.Clean(dir)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, problem.Invalidf("use a directory that does not exist", "write %s: the directory is not empty", dir)
	}
	return stage(dir)
}

// stage begins an OCI layout without images in a temporary directory next to dir.
func stage(dir string) (*Layout, error) {
	staged, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Invalidf("create the parent directory first", "write %s: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", dir, err)
	}
	l := &Layout{dir: dir}
	if l.path, err = layout.Write(staged, empty.Index); err == nil {
		err = os.Chmod(staged, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", dir, err), os.RemoveAll(staged))
	}
	return l, nil
}

// add adds an image with the canonical name of ref.
func (l *Layout) add(ctx context.Context, b *Built, ref string) error {
	tag, err := parseTag(ref)
	if err != nil {
		return err
	}
	if err := appendTo(ctx, l.path, b, tag); err != nil {
		return fmt.Errorf("write %s to %s: %w", tag, l.dir, err)
	}
	return nil
}

// Commit moves the layout to its place.
func (l *Layout) Commit() error { return swap(string(l.path), l.dir) }

// Discard removes the layout, unless it was committed.
func (l *Layout) Discard() error { return os.RemoveAll(string(l.path)) }

// naming returns the annotations with the name of an image in a layout.
func naming(tag name.Tag) layout.Option {
	return layout.WithAnnotations(map[string]string{
		annotationRefName:        tag.TagStr(),
		annotationContainerdName: tag.String(),
	})
}
