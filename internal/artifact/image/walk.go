package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// limits bound the content of an image that is read: anyone who can push to its repository chooses
// the size to which it unpacks.
type limits struct {
	// program and layers are the uncompressed bytes of a copied file and all layers.
	program, layers int64
	// entries is the number of files, directories and links in all layers, and names the number of
	// bytes in their names and link targets.
	entries, names int64
}

// defaultLimits are far above usual images: a kube-scheduler has 40 to 160 MB, a large base with
// compilers has 2 GB in 100,000 files.
func defaultLimits() limits {
	return limits{program: 512 << 20, layers: 8 << 30, entries: 500_000, names: 64 << 20}
}

// Whiteouts hide files of lower layers (image-spec, layer.md, "Whiteouts").
const (
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// walker visits an image's files as a container sees them: layers flattened.
type walker struct {
	limits limits
	// links are the image's links: absolute or relative as they are in it, and hard links as absolute
	// ones.
	links map[string]string
	visit func(at string, h *tar.Header, r io.Reader) error

	left limits
	// seen maps the names in the layers that were read to whether they hide files below them: a name
	// that was deleted, or is not a directory, does.
	seen map[string]bool
	// opaque are directories of which lower layers are hidden.
	opaque map[string]bool
}

// walk calls visit for the regular files, and adds the links to links. It reads all layers to their
// ends, where their digests are verified: the content of files is not to be used before it returns.
// It fails if the image is larger than the limits.
func (w *walker) walk(ctx context.Context, img v1.Image) error {
	w.left, w.seen, w.opaque = w.limits, map[string]bool{}, map[string]bool{}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range slices.Backward(layers) {
		if err := w.layer(ctx, layer); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) layer(ctx context.Context, layer v1.Layer) (err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return fmt.Errorf("read layer: %w", err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	stream := &safeio.LimitedReader{R: safeio.NewReader(ctx, content), N: w.left.layers,
		Err: fmt.Errorf("its layers have more than %d bytes uncompressed", w.limits.layers)}
	defer func() { w.left.layers = stream.N }()
	var opaque []string
	archive := tar.NewReader(stream)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.count(h)
		}
		if err != nil {
			return fmt.Errorf("read layer: %w", err)
		}
		at := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if path.Base(at) == opaqueWhiteout {
			opaque = append(opaque, parent(at))
			continue
		}
		if err := w.entry(at, h, archive); err != nil {
			return err
		}
	}
	for _, dir := range opaque { // its own files are not hidden
		w.opaque[dir] = true
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return fmt.Errorf("read layer: %w", err)
	}
	return nil
}

// count counts an entry.
func (w *walker) count(h *tar.Header) error {
	w.left.entries--
	w.left.names -= int64(len(h.Name) + len(h.Linkname))
	switch {
	case w.left.entries < 0:
		return fmt.Errorf("it has more than %d files", w.limits.entries)
	case w.left.names < 0:
		return fmt.Errorf("the names of its files have more than %d bytes", w.limits.names)
	}
	return nil
}

// entry visits an entry unless an upper layer hides it.
func (w *walker) entry(at string, h *tar.Header, content io.Reader) error {
	base := path.Base(at)
	deleted := strings.HasPrefix(base, whiteoutPrefix)
	if deleted {
		at = path.Join(path.Dir(at), strings.TrimPrefix(base, whiteoutPrefix))
	}
	if _, replaced := w.seen[at]; replaced && !deleted || w.hidden(at) {
		return nil
	}
	w.seen[at] = deleted || h.Typeflag != tar.TypeDir
	switch {
	case deleted:
	case h.Typeflag == tar.TypeSymlink:
		w.links[at] = h.Linkname
	case h.Typeflag == tar.TypeLink:
		w.links[at] = "/" + strings.TrimPrefix(h.Linkname, "/")
	case h.Typeflag == tar.TypeReg:
		return w.visit(at, h, content)
	}
	return nil
}

// hidden reports whether a directory above a name is hidden.
func (w *walker) hidden(at string) bool {
	for at != "" {
		at = parent(at)
		if w.seen[at] || w.opaque[at] {
			return true
		}
	}
	return false
}

// parent returns the directory of a clean name, "" for the root.
func parent(at string) string { return at[:max(0, strings.LastIndexByte(at, '/'))] }
