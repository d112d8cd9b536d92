package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const (
	ociManifest = types.OCIManifestSchema1
	ociConfig   = types.OCIConfigJSON
)

// Build adds o.Files to o.Base for each platform.
//
// Errors about the base, a platform or a file are Invalid. Errors of a registry have a hint.
func Build(ctx context.Context, o Options) (*Built, error) {
	platforms, err := sortedPlatforms(o.Platforms)
	if err != nil {
		return nil, err
	}
	for _, platform := range platforms {
		if err := checkFiles(o.Files[platform], platform); err != nil {
			return nil, err
		}
	}
	bases, pinned, err := resolveBases(ctx, o, platforms)
	if err != nil {
		return nil, err
	}
	b := &Built{Images: map[string]v1.Image{}, Base: pinned}
	for _, platform := range platforms {
		img, err := assemble(ctx, bases[platform], o.Files[platform], o)
		if err != nil {
			return nil, fmt.Errorf("build image for %s: %w", platform, err)
		}
		b.Images[platform] = img
	}
	if b.BaseDigest, err = digestBases(bases, platforms); err != nil {
		return nil, err
	}
	if err := b.seal(platforms, o.Annotations); err != nil {
		return nil, err
	}
	return b, nil
}

// epoch is the creation time in images, so that the same input gives the same digest.
func epoch() v1.Time { return v1.Time{Time: time.Unix(0, 0).UTC()} }

// seal sets the digest, and the index if there is more than one image.
func (b *Built) seal(platforms []string, annotations map[string]string) error {
	var top interface{ Digest() (v1.Hash, error) } = b.Images[platforms[0]]
	if len(platforms) > 1 {
		var adds []mutate.IndexAddendum
		for _, platform := range platforms {
			config, err := b.Images[platform].ConfigFile()
			if err != nil {
				return fmt.Errorf("build index: %w", err)
			}
			adds = append(adds, mutate.IndexAddendum{
				Add:        b.Images[platform],
				Descriptor: v1.Descriptor{Platform: config.Platform()},
			})
		}
		index := mutate.AppendManifests(empty.Index, adds...)
		if len(annotations) > 0 {
			index = mutate.Annotations(index, annotations).(v1.ImageIndex)
		}
		b.Index, top = index, index
	}
	digest, err := top.Digest()
	if err != nil {
		return fmt.Errorf("digest image: %w", err)
	}
	b.Digest = digest.String()
	return nil
}

// digestBases returns the base's digest, or, for several platforms, the digest of their digest
// list.
func digestBases(bases map[string]baseImage, platforms []string) (string, error) {
	var digests []string
	for _, platform := range platforms {
		digest, err := bases[platform].image.Digest()
		if err != nil {
			return "", fmt.Errorf("digest base for %s: %w", platform, err)
		}
		digests = append(digests, digest.String())
	}
	if len(digests) == 1 {
		return digests[0], nil
	}
	all, _, err := v1.SHA256(strings.NewReader(strings.Join(digests, "\n")))
	return all.String(), err
}

func assemble(ctx context.Context, base baseImage, files []File, o Options) (v1.Image, error) {
	var entries []entry
	for _, f := range files {
		entries = append(entries,
			entry{path: strings.TrimPrefix(path.Clean(f.Path), "/"), mode: f.mode(), source: f.Source})
	}
	layer, err := newLayer(ctx, entries)
	if err != nil {
		return nil, err
	}
	img, err := asOCI(base.image)
	if err != nil {
		return nil, fmt.Errorf("read base: %w", err)
	}
	if img, err = mutate.Append(img, mutate.Addendum{Layer: layer}); err != nil {
		return nil, err
	}
	config, err := newConfig(base.image, img, files, o)
	if err != nil {
		return nil, err
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	annotations := maps.Clone(base.annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, o.Annotations)
	if len(annotations) > 0 {
		img = mutate.Annotations(img, annotations).(v1.Image)
	}
	return img, nil
}

// asOCI returns the image with OCI media types: Docker's media types do not support annotations,
// and registries refuse a mixture.
func asOCI(img v1.Image) (v1.Image, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for _, layer := range layers {
		mt, err := layer.MediaType()
		if err != nil {
			return nil, err
		}
		switch mt {
		case types.DockerLayer:
			mt = types.OCILayer
		case types.DockerUncompressedLayer:
			mt = types.OCIUncompressedLayer
		case types.DockerForeignLayer:
			mt = types.OCIRestrictedLayer
		}
		adds = append(adds, mutate.Addendum{Layer: withMediaType(layer, mt)})
	}
	return mutate.Append(ociEmpty(), adds...)
}

// newConfig returns base's configuration with the settings in o, for img's layers.
func newConfig(base, img v1.Image, files []File, o Options) (*v1.ConfigFile, error) {
	old, err := base.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read configuration of base: %w", err)
	}
	layered, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := old.DeepCopy()
	config.RootFS = layered.RootFS
	config.Created = epoch()
	config.Container, config.DockerVersion = "", "" //nolint:staticcheck // set by the engine that built the base
	c := &config.Config
	c.User = o.User
	if c.User == "" {
		c.User = DefaultUser
	}
	for _, pair := range o.Env {
		c.Env = setEnv(c.Env, pair)
	}
	if len(o.Entrypoint) > 0 {
		c.Entrypoint, c.Cmd = slices.Clone(o.Entrypoint), nil
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, o.Labels)
	config.History = newHistory(config, files, len(layered.RootFS.DiffIDs)-1)
	return config, nil
}

// maxHistoryPaths is the maximum number of files named in an image's history. A Go image has
// thousands.
const maxHistoryPaths = 20

// newHistory adds an entry for the files and one for the settings. It also adds a base's missing
// entries, because engines refuse a history that is shorter than the list of layers.
func newHistory(config *v1.ConfigFile, files []File, baseLayers int) []v1.History {
	history := slices.Clone(config.History)
	for _, h := range history {
		if !h.EmptyLayer {
			baseLayers--
		}
	}
	for ; baseLayers > 0; baseLayers-- {
		history = append(history, v1.History{Created: config.Created, Comment: "base"})
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	if more := len(paths) - maxHistoryPaths; more > 0 {
		paths = append(paths[:maxHistoryPaths], fmt.Sprintf("and %d more", more))
	}
	settings := fmt.Sprintf("USER %s ENTRYPOINT %q", config.Config.User, config.Config.Entrypoint)
	return append(history,
		v1.History{Created: config.Created, CreatedBy: "COPY " + strings.Join(paths, " "), Comment: userAgent},
		v1.History{Created: config.Created, CreatedBy: settings, Comment: userAgent, EmptyLayer: true})
}

func setEnv(env []string, pair string) []string {
	name, _, _ := strings.Cut(pair, "=")
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	if i < 0 {
		return append(slices.Clone(env), pair)
	}
	env = slices.Clone(env)
	env[i] = pair
	return env
}

func (f File) mode() int64 {
	if f.Mode == 0 {
		return 0o755
	}
	return f.Mode
}

// checkFiles refuses missing files, invalid or duplicate paths in the image, and programs for
// another platform.
func checkFiles(files []File, platform string) error {
	if len(files) == 0 {
		return problem.Invalidf("", "the image for %s has no files", platform)
	}
	seen := map[string]bool{}
	for _, f := range files {
		clean := path.Clean(f.Path)
		if !path.IsAbs(f.Path) || clean == "/" {
			return problem.Invalidf("", "file %s: the path in the image, %q, is not absolute", f.Source, f.Path)
		}
		if seen[clean] {
			return problem.Invalidf("", "the image for %[2]s has two files %[1]s", clean, platform)
		}
		seen[clean] = true
		if err := checkFile(f.Source, platform); err != nil {
			return err
		}
	}
	return nil
}

func checkFile(source, platform string) error {
	info, err := os.Stat(source)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.Invalidf("", "file for the image: %w", err)
	}
	if err != nil {
		return fmt.Errorf("file for the image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return problem.Invalidf("", "file for the image: %s is not a regular file", source)
	}
	if made, machine, ok := programPlatform(source); ok && !runsOn(made, platform) {
		return problem.Invalidf("build the program for "+platform, "%s: expected a program for %s, got %s (%s)", source,
			platform, orUnknown(made), machine)
	}
	return nil
}
