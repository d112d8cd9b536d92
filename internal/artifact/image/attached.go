package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// Documents returns the documents with a media type that are attached to the index or the manifest
// with the digest, the smallest first, without documents larger than limit bytes. They are
// untrusted input: one is read at a time, and more than 64 MiB in all are an error, which is the
// last element.
func (s *Stored) Documents(ctx context.Context, digest, mediaType string, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		subject, err := v1.NewHash(digest)
		if err != nil {
			yield(nil, err)
			return
		}
		images, err := s.attached(ctx, subject)
		if err != nil {
			yield(nil, fmt.Errorf("read the attachments of %s: %w", s.Name, err))
			return
		}
		left := int64(maxDocuments)
		for _, a := range documentsOf(images, subject, mediaType) {
			if a.layer.Size > limit {
				return // so are the others
			}
			if left -= a.layer.Size; left < 0 {
				yield(nil, fmt.Errorf("the attachments of %s have more than %d bytes", s.Name, maxDocuments))
				return
			}
			text, err := readBlob(a.image, a.layer)
			if err != nil {
				err = fmt.Errorf("read an attachment of %s: %w", s.Name, err)
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// attachedDocument is an attachment's document.
type attachedDocument struct {
	image v1.Image
	layer v1.Descriptor
}

// documentsOf returns the documents of a media type that are attached to a subject, the smallest
// first: a signature has 1 KiB, and is found before large documents that others attached.
func documentsOf(images []v1.Image, subject v1.Hash, mediaType string) []attachedDocument {
	var list []attachedDocument
	for _, img := range images {
		manifest, err := img.Manifest()
		if err != nil || manifest.Subject == nil || manifest.Subject.Digest != subject {
			continue // an attachment that others made
		}
		if layer, ok := onlyLayer(manifest, mediaType); ok {
			list = append(list, attachedDocument{img, layer})
		}
	}
	slices.SortStableFunc(list, func(a, b attachedDocument) int { return cmp.Compare(a.layer.Size, b.layer.Size) })
	return list
}

// attachedInRegistry returns the manifests that refer to a subject.
func attachedInRegistry(subject name.Digest, opts []remote.Option) ([]v1.Image, error) {
	index, err := remote.Referrers(subject, opts...)
	if err != nil {
		return nil, registryError("list the attachments of", subject, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) > maxAttachments {
		return nil, fmt.Errorf("%s has %d attachments, the limit is %d", subject, len(manifest.Manifests), maxAttachments)
	}
	var images []v1.Image
	for _, d := range manifest.Manifests {
		if !d.MediaType.IsImage() || d.Size > maxAttachment {
			continue
		}
		img, err := remote.Image(subject.Context().Digest(d.Digest.String()), opts...)
		if err != nil {
			return nil, registryError("read an attachment of", subject, err)
		}
		if text, err := img.RawManifest(); err != nil || len(text) > maxAttachment {
			continue // it is larger than its entry says
		}
		images = append(images, img)
	}
	return images, nil
}

// Document returns the document in an artifact that [NewArtifact] made, or nil unless it has the
// media type and at most limit bytes. It is untrusted input.
func (s *Stored) Document(mediaType string, limit int64) ([]byte, error) {
	img, ok := s.images[s.Digest]
	if !ok {
		return nil, nil
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	layer, ok := onlyLayer(manifest, mediaType)
	if !ok || layer.Size > limit {
		return nil, nil
	}
	return readBlob(img, layer)
}

// onlyLayer returns the layer of a manifest with one layer, which has that media type.
func onlyLayer(manifest *v1.Manifest, mediaType string) (v1.Descriptor, bool) {
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.MediaType(mediaType) {
		return v1.Descriptor{}, false
	}
	return manifest.Layers[0], manifest.Layers[0].Size >= 0
}

// readBlob reads a layer of an image. A layer that is larger than its manifest says is an error.
func readBlob(img v1.Image, d v1.Descriptor) ([]byte, error) {
	layer, err := img.LayerByDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(&safeio.LimitedReader{R: stream, N: d.Size,
		Err: fmt.Errorf("%s has more than the %d bytes in its manifest", d.Digest, d.Size)})
	return text, errors.Join(err, stream.Close())
}
