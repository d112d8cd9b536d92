package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// emptyConfig is the media type of the configuration {} in a manifest that is not for an image
// (image-spec, manifest.md, "Guidelines for Artifact Usage").
const emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"

// annotationCreated is the time at which an attachment was made (image-spec, annotations.md).
const annotationCreated = "org.opencontainers.image.created"

// Manifest is the manifest of an image for one platform.
type Manifest struct {
	Platform string
	// Digest is "sha256:…".
	Digest string
}

// Manifests lists the image's manifests, sorted by platform.
func (b *Built) Manifests() ([]Manifest, error) {
	var list []Manifest
	for _, platform := range b.platforms() {
		digest, err := b.Images[platform].Digest()
		if err != nil {
			return nil, fmt.Errorf("digest image: %w", err)
		}
		list = append(list, Manifest{Platform: platform, Digest: digest.String()})
	}
	return list, nil
}

// Attach attaches a document to the index or the manifest of the image with the given digest: it
// adds a manifest that refers to it (image-spec, manifest.md, "subject"). The digest of the image
// stays. Push and WriteLayout write attachments too. The same document gives the same manifest:
// its creation time is fixed.
func (b *Built) Attach(digest, mediaType string, document []byte, annotations map[string]string) error {
	subject, err := b.descriptor(digest)
	if err != nil {
		return err
	}
	a, err := newAttachment(subject, mediaType, document, annotations)
	if err != nil {
		return fmt.Errorf("attach to %s: %w", digest, err)
	}
	b.attached = append(b.attached, a)
	return nil
}

// descriptor describes the index or the manifest with the digest.
func (b *Built) descriptor(digest string) (*v1.Descriptor, error) {
	parts := []partial.Describable{}
	if b.Index != nil {
		parts = append(parts, b.Index)
	}
	for _, platform := range b.platforms() {
		parts = append(parts, b.Images[platform])
	}
	for _, part := range parts {
		hash, err := part.Digest()
		if err != nil {
			return nil, fmt.Errorf("digest image: %w", err)
		}
		if hash.String() != digest {
			continue
		}
		size, err := part.Size()
		if err != nil {
			return nil, fmt.Errorf("measure image: %w", err)
		}
		mediaType, err := part.MediaType()
		return &v1.Descriptor{MediaType: mediaType, Size: size, Digest: hash}, err
	}
	return nil, fmt.Errorf("attach to %s: the image has no such manifest", digest)
}

// isAttachment reports whether an index entry is not an image. An image's type in
// go-containerregistry is its configuration's media type.
func isAttachment(d v1.Descriptor) bool {
	return !slices.Contains([]types.MediaType{"", types.OCIConfigJSON, types.DockerConfigJSON},
		types.MediaType(d.ArtifactType))
}

// attachment is a manifest with one document.
type attachment struct {
	v1.Image
	descriptor v1.Descriptor
}

// newAttachment returns a manifest with a document. It refers to subject, unless subject is nil.
func newAttachment(
	subject *v1.Descriptor, mediaType string, document []byte, annotations map[string]string,
) (*attachment, error) {
	layer := static.NewLayer(document, types.MediaType(mediaType))
	layerDigest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	config := []byte("{}")
	configDigest, configSize, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	all := map[string]string{annotationCreated: epoch().Format(time.RFC3339)}
	maps.Copy(all, annotations)
	// Registries and go-containerregistry take the type from either place; cosign writes both.
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: ociManifest, ArtifactType: mediaType,
		Config:  v1.Descriptor{MediaType: emptyConfig, Size: configSize, Digest: configDigest, ArtifactType: mediaType},
		Layers:  []v1.Descriptor{{MediaType: types.MediaType(mediaType), Size: int64(len(document)), Digest: layerDigest}},
		Subject: subject, Annotations: all,
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	img, err := partial.CompressedToImage(&rawImage{manifest: text, config: config, layer: layer})
	if err != nil {
		return nil, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(text))
	return &attachment{
		Image: img,
		descriptor: v1.Descriptor{
			MediaType: ociManifest, Size: size, Digest: digest, ArtifactType: mediaType, Annotations: all,
		},
	}, err
}

// rawImage is an image with one layer, from its parts' bytes.
type rawImage struct {
	manifest, config []byte
	layer            v1.Layer
}

func (r *rawImage) RawConfigFile() ([]byte, error)      { return r.config, nil }
func (r *rawImage) MediaType() (types.MediaType, error) { return ociManifest, nil }
func (r *rawImage) RawManifest() ([]byte, error)        { return r.manifest, nil }
func (r *rawImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if digest, err := r.layer.Digest(); err != nil || digest != h {
		return nil, fmt.Errorf("no layer %s", h)
	}
	return r.layer, nil
}

// checkAttached refuses destinations that lose attachments.
func (b *Built) checkAttached(file string) error {
	if len(b.attached) == 0 {
		return nil
	}
	return problem.Invalidf("write an OCI layout: a path that does not end in .tar",
		"write %s: a docker archive has no manifest, so it cannot have the signatures of one", file)
}

// sortedAttachments returns the attachments in the order of their digests.
func (b *Built) sortedAttachments() []*attachment {
	return slices.SortedFunc(slices.Values(b.attached), func(x, y *attachment) int {
		return bytes.Compare([]byte(x.descriptor.Digest.Hex), []byte(y.descriptor.Digest.Hex))
	})
}
