package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// Limits for reading an image: anyone who can push to its repository can add attachments.
const (
	maxAttachments = 256
	maxManifests   = 64
	// maxAttachment is the maximum size in bytes of an attachment's manifest, which has 1 KiB, and
	// maxDocuments the maximum size of all documents that are read. A bill of materials has 150 KiB.
	maxAttachment = 64 << 10
	maxDocuments  = 64 << 20
	// maxManifest is the size in bytes of a manifest, an index or a configuration. It is parsed into
	// some hundred times as much memory in the worst case.
	maxManifest = 1 << 20
)

// Stored is an image in a registry or an OCI layout, as it is there.
type Stored struct {
	// Name is the image name with its digest, or the layout's path.
	Name string
	// Digest is the index's digest, or that of the only manifest: "sha256:…".
	Digest string
	// Manifests are the platforms' images.
	Manifests []Manifest

	source   Source
	images   map[string]v1.Image // by digest
	attached func(ctx context.Context, subject v1.Hash) ([]v1.Image, error)
}

// Open reads an image's manifests. An image name in a registry is resolved once. Registry errors
// have a hint; a source without manifests is an Invalid error.
func Open(ctx context.Context, src Source) (*Stored, error) {
	switch {
	case src.Archive != "":
		return nil, problem.Invalidf("write an OCI layout: `pmk-sched build --archive DIR`",
			"read %s: a docker archive has no manifest, so it has no digest and no signatures", src.Archive)
	case src.Layout != "":
		return openLayout(src)
	case src.Reference == "" || src.Containerd != "":
		return nil, problem.Invalidf(nameHint, "expected an image in a registry, or an OCI layout")
	}
	ref, err := parseReference(src.Reference)
	if err != nil {
		return nil, err
	}
	opts := remoteOptions(ctx, src.Keychain)
	found, err := remote.Get(ref, opts...)
	if err != nil {
		return nil, registryError("read", ref, err)
	}
	pinned := ref.Context().Digest(found.Digest.String())
	s := &Stored{
		Name: canonical(pinned), source: Source{Reference: canonical(pinned), Keychain: src.Keychain},
		attached: func(ctx context.Context, subject v1.Hash) ([]v1.Image, error) {
			return attachedInRegistry(pinned.Context().Digest(subject.String()), remoteOptions(ctx, src.Keychain))
		},
	}
	if err := s.read(found.Descriptor, found.ImageIndex, found.Image); err != nil {
		return nil, registryError("read", ref, err)
	}
	return s, nil
}

// openLayout reads a layout's only image.
func openLayout(src Source) (*Stored, error) {
	fail := func(err error) (*Stored, error) {
		return nil, problem.Invalidf("", "read OCI layout %s: %w", src.Layout, err)
	}
	found, err := readLayout(src.Layout)
	if err != nil {
		return fail(err)
	}
	s := &Stored{
		Name: src.Layout, source: src,
		attached: func(ctx context.Context, _ v1.Hash) ([]v1.Image, error) {
			images, err := found.attachments()
			return images, errors.Join(err, ctx.Err())
		},
	}
	err = s.read(found.top, func() (v1.ImageIndex, error) { return found.index.ImageIndex(found.top.Digest) },
		func() (v1.Image, error) { return found.index.Image(found.top.Digest) })
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// storedLayout is an OCI layout with one image and what is attached to it.
type storedLayout struct {
	index    v1.ImageIndex
	top      v1.Descriptor
	attached []v1.Descriptor
}

// readLayout reads a layout's index, which is untrusted input.
func readLayout(dir string) (*storedLayout, error) {
	info, err := os.Stat(filepath.Join(dir, "index.json"))
	if err == nil && info.Size() > maxManifest {
		err = fmt.Errorf("its index has %d bytes, the limit is %d", info.Size(), maxManifest)
	}
	if err != nil {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	s := &storedLayout{index: index}
	images := 0
	for _, d := range manifest.Manifests {
		if isAttachment(d) {
			s.attached = append(s.attached, d)
		} else {
			s.top, images = d, images+1
		}
	}
	if images != 1 {
		return nil, fmt.Errorf("expected one image, got %d", images)
	}
	if len(s.attached) > maxAttachments {
		return nil, fmt.Errorf("expected at most %d attachments, got %d", maxAttachments, len(s.attached))
	}
	return s, nil
}

func (s *storedLayout) attachments() ([]v1.Image, error) {
	var images []v1.Image
	for _, d := range s.attached {
		img, err := s.index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	return images, nil
}

// read sets the digest and the manifests from the descriptor of the index or the only manifest.
func (s *Stored) read(
	top v1.Descriptor, index func() (v1.ImageIndex, error), single func() (v1.Image, error),
) error {
	s.Digest, s.images = top.Digest.String(), map[string]v1.Image{}
	if top.Size > maxManifest {
		return fmt.Errorf("manifest %s has %d bytes, the limit is %d", top.Digest, top.Size, maxManifest)
	}
	if !top.MediaType.IsIndex() {
		img, err := single()
		if err != nil {
			return err
		}
		return s.add(top.Digest, img)
	}
	list, err := index()
	if err != nil {
		return err
	}
	if err := checkDigest(top.Digest, list.RawManifest); err != nil {
		return err
	}
	manifest, err := list.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) > maxManifests {
		return fmt.Errorf("index %s has %d manifests, the limit is %d", top.Digest, len(manifest.Manifests), maxManifests)
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.Platform != nil && d.Platform.OS == "unknown" || isAttachment(d): // runs nowhere
			continue
		case !d.MediaType.IsImage():
			return fmt.Errorf("index %s has an entry of the type %.100q, expected images", top.Digest, d.MediaType)
		}
		img, err := list.Image(d.Digest)
		if err == nil {
			err = s.add(d.Digest, img)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stored) add(digest v1.Hash, img v1.Image) error {
	if err := checkDigest(digest, img.RawManifest); err != nil {
		return err
	}
	c, err := registryCandidate(img)
	if err != nil {
		return err
	}
	s.images[digest.String()] = img
	s.Manifests = append(s.Manifests, Manifest{Platform: c.platform.String(), Digest: digest.String()})
	return nil
}

func checkDigest(want v1.Hash, read func() ([]byte, error)) error {
	text, err := read()
	if err != nil {
		return err
	}
	got, _, err := v1.SHA256(bytes.NewReader(text))
	if err == nil && got != want {
		err = fmt.Errorf("expected content with the digest %s, got %s", want, got)
	}
	return err
}

// Source returns the source to read a program of the manifest from.
func (s *Stored) Source(m Manifest) Source {
	src := s.source
	if ref, err := parseReference(src.Reference); src.Reference != "" && err == nil {
		src.Reference = canonical(ref.Context().Digest(m.Digest))
	}
	return src
}

// Verify reads the whole image and returns an error unless the configuration and the layers of each
// manifest have the digests and the sizes in the manifest.
func (s *Stored) Verify(ctx context.Context) error {
	for _, m := range s.Manifests {
		img := s.images[m.Digest]
		manifest, err := img.Manifest()
		if err != nil {
			return err
		}
		if err := checkDigest(manifest.Config.Digest, img.RawConfigFile); err != nil {
			return fmt.Errorf("configuration for %s: %w", m.Platform, err)
		}
		for _, d := range manifest.Layers {
			if err := verifyLayer(ctx, img, d); err != nil {
				return fmt.Errorf("layer %s for %s: %w", d.Digest, m.Platform, err)
			}
		}
	}
	return nil
}

func verifyLayer(ctx context.Context, img v1.Image, d v1.Descriptor) (err error) {
	layer, err := img.LayerByDigest(d.Digest)
	if err != nil {
		return err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(safeio.NewReader(ctx, stream), d.Size+1))
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); size != d.Size || got != d.Digest.Hex || d.Digest.Algorithm != "sha256" {
		return fmt.Errorf("expected %d bytes with the digest %s, got %d with sha256:%s", d.Size, d.Digest, size, got)
	}
	return nil
}
