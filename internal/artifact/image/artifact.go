package image

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// NewArtifact returns a manifest with one document, which is not an image. Its artifactType is the
// document's media type (image-spec, manifest.md, "Guidelines for Artifact Usage"). It can be
// signed and pushed like an image.
func NewArtifact(mediaType string, document []byte, annotations map[string]string) (*Built, error) {
	a, err := newAttachment(nil, mediaType, document, annotations)
	if err != nil {
		return nil, fmt.Errorf("make artifact %s: %w", mediaType, err)
	}
	const anyPlatform = ""
	return &Built{Images: map[string]v1.Image{anyPlatform: a}, Digest: a.descriptor.Digest.String()}, nil
}
