package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Documents returns the documents of a media type that are attached to the index or the manifest
// with the digest, without documents of more than limit bytes. They are untrusted input.
func (s *Stored) Documents(ctx context.Context, digest, mediaType string, limit int64) ([][]byte, error) {
	subject, err := v1.NewHash(digest)
	if err != nil {
		return nil, err
	}
	images, err := s.attached(ctx, subject)
	if err != nil {
		return nil, fmt.Errorf("read the attachments of %s: %w", s.Name, err)
	}
	var documents [][]byte
	for _, img := range images {
		text, err := document(img, subject, mediaType, limit)
		if err != nil {
			return nil, fmt.Errorf("read an attachment of %s: %w", s.Name, err)
		}
		if text != nil {
			documents = append(documents, text)
		}
	}
	return documents, nil
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
		if !d.MediaType.IsImage() || d.Size > maxManifest {
			continue
		}
		img, err := remote.Image(subject.Context().Digest(d.Digest.String()), opts...)
		if err != nil {
			return nil, registryError("read an attachment of", subject, err)
		}
		images = append(images, img)
	}
	return images, nil
}

// document returns the document of an attachment to the manifest with the digest subject. It
// returns nil if img is not one with the media type.
func document(img v1.Image, subject v1.Hash, mediaType string, limit int64) ([]byte, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	if manifest.Subject == nil || manifest.Subject.Digest != subject {
		return nil, nil
	}
	return onlyLayer(img, manifest, mediaType, limit)
}

// Document returns the document of an artifact that [NewArtifact] made, or nil if it is not one of
// the media type with at most limit bytes. It is untrusted input.
func (s *Stored) Document(mediaType string, limit int64) ([]byte, error) {
	img, ok := s.images[s.Digest]
	if !ok {
		return nil, nil
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	return onlyLayer(img, manifest, mediaType, limit)
}

// onlyLayer returns the content of the layer of a manifest with one layer, of that media type and
// of at most limit bytes, or nil.
func onlyLayer(img v1.Image, manifest *v1.Manifest, mediaType string, limit int64) ([]byte, error) {
	layers := manifest.Layers
	if len(layers) != 1 || layers[0].MediaType != types.MediaType(mediaType) || layers[0].Size > limit {
		return nil, nil
	}
	layer, err := img.LayerByDigest(layers[0].Digest)
	if err != nil {
		return nil, err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(stream, limit+1))
	if err := errors.Join(err, stream.Close()); err != nil || int64(len(text)) > limit {
		return nil, err
	}
	return text, nil
}
