package image

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Build lays o.Files on o.Base for each platform.
func Build(ctx context.Context, o Options) (*Built, error) { return nil, nil }

// ParseBase tells from what a person typed which kind of base it is: a folder
// with an OCI layout, a file (docker archive), or else a registry reference.
func ParseBase(s string) (Base, error) { return Base{Reference: s}, nil }

// WriteArchive writes b as the docker archive file, named ref in it.
func WriteArchive(ctx context.Context, b *Built, ref, file string) error { return nil }

// WriteLayout writes b as the OCI layout folder dir, named ref in it.
func WriteLayout(ctx context.Context, b *Built, ref, dir string) error { return nil }

// LoadContainerd imports the image of this machine's architecture into the
// namespace k8s.io of the containerd that listens on socket
// ("" means DefaultContainerdSocket), under the name the kubelet will look for.
func LoadContainerd(ctx context.Context, b *Built, ref, socket string) error { return nil }

// LoadDocker loads the image of this machine's architecture into Docker.
func LoadDocker(ctx context.Context, b *Built, ref string) error { return nil }

// CanonicalName is the full form of an image name, as the kubelet and containerd
// write it.
func CanonicalName(ref string) (string, error) { return ref, nil }

// Source is an image to read from: one of Reference, Archive and Layout, or
// Reference with Containerd.
type Source struct {
	Reference  string
	Archive    string
	Layout     string
	Containerd string
	Insecure   bool
	Keychain   authn.Keychain
}

// ExtractFile writes the file path of the image to the file to, with mode 0755
// if it is executable in the image. path "" means the image's entrypoint.
// platform "" means this machine's. An image without that file gives an error
// that is fs.ErrNotExist.
func ExtractFile(ctx context.Context, src Source, path, platform, to string) error { return nil }

// Description is what the labels of an image tell about it.
type Description struct {
	Title, Version, Source, Release, Plugins string
}

// Labels returns the labels and annotations for d.
func (d Description) Labels() map[string]string { return nil }
