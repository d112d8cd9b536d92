package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Layout is an OCI layout of several images that is being written. Images share their layers.
type Layout struct {
	dir, staged string
}

// NewLayout begins an OCI layout at dir, which must not exist or be empty. It is written by
// [Layout.Commit], or removed by [Layout.Discard].
func NewLayout(dir string) (*Layout, error) {
	dir = filepath.Clean(dir)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, problem.Invalidf("use a directory that does not exist", "write %s: the directory is not empty", dir)
	}
	staged, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if err != nil {
		return nil, problem.Invalidf("create the parent directory first", "write %s: %w", dir, err)
	}
	l := &Layout{dir: dir, staged: staged}
	_, err = layout.Write(staged, empty.Index)
	if err = errors.Join(err, os.Chmod(staged, 0o755)); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", dir, err), l.Discard())
	}
	return l, nil
}

// add adds an image with the canonical name of ref.
func (l *Layout) add(ctx context.Context, b *Built, ref string) error {
	tag, err := parseTag(ref)
	if err != nil {
		return err
	}
	path, err := layout.FromPath(l.staged)
	if err == nil {
		err = appendTo(ctx, path, b, tag)
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", tag, l.dir, err)
	}
	return nil
}

// Commit moves the layout to its place.
func (l *Layout) Commit() error { return swap(l.staged, l.dir) }

// Discard removes the layout, unless it was committed.
func (l *Layout) Discard() error { return os.RemoveAll(l.staged) }

// naming returns the annotations with the name of an image in a layout.
func naming(tag name.Tag) layout.Option {
	return layout.WithAnnotations(map[string]string{
		annotationRefName:        tag.TagStr(),
		annotationContainerdName: tag.String(),
	})
}
