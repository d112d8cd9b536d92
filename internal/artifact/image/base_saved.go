package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// DefaultBase is an image's base unless the user names one.
const DefaultBase = "busybox"

// FileName returns a name for the file or the directory of an image.
func FileName(ref string) (string, error) {
	full, err := CanonicalName(ref)
	return strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(full), err
}

// SaveBase writes a base for platforms to an OCI layout below dir, from where [Build] takes it if
// Options.Bases is dir and Options.Base names it. A base that is not in a registry gets the name
// DefaultBase. The returned reference has the base's digest.
func SaveBase(ctx context.Context, b Base, platforms []string, keychain authn.Keychain, dir string) (string, error) {
	reference := b.Reference
	if reference == "" {
		reference = DefaultBase
	}
	name, err := FileName(reference)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save base %s: %w", b, err)
	}
	if b.Reference != "" {
		digest, err := saveFromRegistry(ctx, b, platforms, keychain, to)
		return reference + "@" + digest, err
	}
	sorted, err := sortedPlatforms(platforms)
	if err != nil {
		return "", err
	}
	bases, _, err := resolveBases(ctx, Options{Base: b, Keychain: keychain}, sorted)
	if err != nil {
		return "", err
	}
	built := &Built{Images: map[string]v1.Image{}}
	for _, platform := range sorted {
		built.Images[platform] = bases[platform].image
	}
	if err := built.seal(sorted, nil); err != nil {
		return "", err
	}
	return reference + "@" + built.Digest, WriteLayout(ctx, built, reference, to)
}

// saveFromRegistry writes the base unchanged: its index too, which lists platforms that are not
// written, so that images on it have the same digest as with the registry.
func saveFromRegistry(
	ctx context.Context, b Base, platforms []string, keychain authn.Keychain, to string,
) (string, error) {
	ref, err := parseReference(b.Reference)
	if err != nil {
		return "", err
	}
	found, err := remote.Get(ref, remoteOptions(ctx, keychain)...)
	if err != nil {
		return "", registryError("pull", ref, err)
	}
	candidates, err := registryCandidates(found)
	if err != nil {
		return "", registryError("pull", ref, err)
	}
	l, err := layout.Write(to, empty.Index)
	if err != nil {
		return "", fmt.Errorf("save base %s: %w", b, err)
	}
	for _, platform := range platforms {
		c, err := choose(candidates, platform, "base "+b.String())
		if err != nil {
			return "", err
		}
		if err := l.WriteImage(c.image); err != nil {
			return "", registryError("pull", ref, err)
		}
	}
	top := found.Descriptor
	top.Annotations = map[string]string{annotationBaseName: canonical(ref), annotationBaseDigest: top.Digest.String()}
	err = l.WriteBlob(top.Digest, io.NopCloser(bytes.NewReader(found.Manifest)))
	if err = errors.Join(err, l.AppendDescriptor(top)); err != nil {
		return "", fmt.Errorf("save base %s: %w", b, err)
	}
	return top.Digest.String(), nil
}

// saved returns the images of a base that [SaveBase] wrote below dir. It returns none if there is
// no such base, or if it lacks one of the platforms.
func (b Base) saved(dir string, platforms []string) ([]candidate, *origin, error) {
	if dir == "" || b.Reference == "" {
		return nil, nil, nil
	}
	name, err := FileName(b.Reference)
	if err != nil {
		return nil, nil, err
	}
	from := filepath.Join(dir, name)
	index, err := layout.ImageIndexFromPath(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read base %s in %s: %w", b, from, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, fmt.Errorf("read base %s in %s: %w", b, from, err)
	}
	all, err := indexCandidates(index)
	if err != nil {
		return nil, nil, fmt.Errorf("read base %s in %s: %w", b, from, err)
	}
	var found []candidate
	for _, c := range all {
		if _, err := c.image.RawManifest(); err == nil {
			found = append(found, c)
		}
	}
	for _, platform := range platforms {
		if _, err := choose(found, platform, "base"); err != nil {
			return nil, nil, nil //nolint:nilerr // the registry has it
		}
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[annotationBaseDigest] == "" {
		return found, nil, nil
	}
	ref, err := parseReference(b.Reference)
	return found, &origin{ref: ref, digest: manifest.Manifests[0].Digest}, err
}
