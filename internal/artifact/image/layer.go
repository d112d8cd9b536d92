package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// entry is one path in a layer. Exactly one of dir, link, source and text is set. The default owner
// is root.
type entry struct {
	path   string // without leading slash
	mode   int64
	owner  int // user and group
	dir    bool
	link   string // target of a symbolic link
	source string // file to read
	text   string
}

// newLayer returns a compressed layer of the entries and their parent directories. It depends only
// on paths, modes, owners and contents. It is kept in memory, so the files are not needed after the
// call.
func newLayer(ctx context.Context, entries []entry) (v1.Layer, error) {
	var compressed bytes.Buffer
	// The fastest level: a 46 MB kube-scheduler gets 15 % larger than with the default level, in a
	// third of the time.
	gz, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	tw := tar.NewWriter(gz)
	for _, e := range withParents(entries) {
		if err := writeEntry(ctx, tw, e); err != nil {
			return nil, fmt.Errorf("add /%s to layer: %w", e.path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("finish layer: %w", err)
	}
	if err := gz.Close(); err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(compressed.Bytes())), nil
	})
	if err != nil {
		return nil, fmt.Errorf("digest layer: %w", err)
	}
	return withMediaType(layer, types.OCILayer), nil
}

type typedLayer struct {
	v1.Layer
	mediaType types.MediaType
}

func (l typedLayer) MediaType() (types.MediaType, error) { return l.mediaType, nil }

// withMediaType changes a layer's media type. The registry can still mount a registry layer into
// another repository.
func withMediaType(layer v1.Layer, mt types.MediaType) v1.Layer {
	if m, ok := layer.(*remote.MountableLayer); ok {
		return &remote.MountableLayer{Layer: typedLayer{m.Layer, mt}, Reference: m.Reference}
	}
	return typedLayer{layer, mt}
}

// withParents adds the parent directories of the entries and sorts by path, so that a directory
// comes before its contents.
func withParents(entries []entry) []entry {
	seen := map[string]bool{}
	all := slices.Clone(entries)
	for _, e := range entries {
		seen[e.path] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, entry{path: dir, mode: 0o755, dir: true})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	return all
}

func writeEntry(ctx context.Context, tw *tar.Writer, e entry) error {
	header := &tar.Header{
		Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: time.Unix(0, 0).UTC(),
	}
	var content io.Reader = strings.NewReader(e.text)
	switch {
	case e.dir:
		header.Typeflag, header.Name = tar.TypeDir, e.path+"/"
	case e.link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.link, 0o777
	case e.source != "":
		file, err := os.Open(e.source)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size, content = tar.TypeReg, info.Size(), file
	default:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(e.text))
	}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(tw, safeio.NewReader(ctx, content))
	return err
}
