package image

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const archiveHint = "\"docker save\" writes one; a directory with an OCI layout is accepted too"

// archiveCandidates reads a docker archive, which must have one image.
func archiveCandidates(file string) ([]candidate, error) {
	opener := archiveOpener(file)
	manifest, err := tarball.LoadManifest(opener)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Invalidf("", "read docker archive: %w", err)
	}
	if err != nil {
		return nil, problem.Invalidf(archiveHint, "read docker archive %s: %w", file, err)
	}
	if len(manifest) != 1 {
		names := []string{}
		for _, m := range manifest {
			names = append(names, m.RepoTags...)
		}
		return nil, problem.Invalidf("save one image to a separate archive",
			"read docker archive %s: expected one image, got %d (%s)", file, len(manifest), strings.Join(names, ", "))
	}
	img, err := tarball.Image(opener, nil)
	if err != nil {
		return nil, problem.Invalidf(archiveHint, "read docker archive %s: %w", file, err)
	}
	c, err := newCandidate(img)
	return []candidate{c}, err
}

// archiveOpener opens an archive, and decompresses it if necessary.
func archiveOpener(file string) tarball.Opener {
	return func() (io.ReadCloser, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		var magic [2]byte
		_, err = io.ReadFull(f, magic[:])
		zipped := err == nil && magic == [2]byte{0x1f, 0x8b}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !zipped {
			return f, nil
		}
		gz, err := gzip.NewReader(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return struct {
			io.Reader
			io.Closer
		}{gz, f}, nil
	}
}

func layoutCandidates(dir string) ([]candidate, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	found, err := indexCandidates(index)
	if err != nil {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", dir, err)
	}
	return found, nil
}

// indexCandidates returns the images in an index and its nested indexes, without other entries such
// as attestations and attachments.
func indexCandidates(index v1.ImageIndex) ([]candidate, error) {
	left := maxManifests
	return readIndex(index, &left)
}

// readIndex reads an index. left is the number of manifests that may still be read.
func readIndex(index v1.ImageIndex, left *int) ([]candidate, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.OS == "unknown" || isAttachment(d) {
			continue
		}
		if *left--; *left < 0 {
			return nil, fmt.Errorf("the index has more than %d manifests", maxManifests)
		}
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			more, err := readIndex(inner, left)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		case d.MediaType.IsImage():
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			c := candidate{image: img}
			if d.Platform != nil {
				c.platform = *d.Platform
			} else if c, err = registryCandidate(img); err != nil {
				return nil, err
			}
			found = append(found, c)
		}
	}
	return found, nil
}
