package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Push copies a bundle's images, with their referrers, to registry repositories below prefix,
// REGISTRY or REGISTRY/PATH. from is an archive or a build cache directory. An image keeps its tag
// and repository path; its digest stays the same. CA is the path of the registry's certificate
// authorities, or empty.
//
// If the session's cache has an image's build, it is recorded under the new name too, so that
// `deploy` knows the plugins in the image.
func Push(ctx context.Context, from, prefix, ca string, s *session.Session) (_ []*image.Pushed, err error) {
	root := from
	if info, statErr := os.Stat(from); statErr == nil && info.Mode().IsRegular() {
		dir, remove, err := extractImages(ctx, from)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		root = dir
	}
	images := filepath.Join(root, filepath.FromSlash(imageDir))
	entries, err := os.ReadDir(images)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return nil, problem.Invalidf("use a bundle, or a directory into which one was unpacked", "%s has no images of a bundle",
			from)
	}
	pushed := []*image.Pushed{}
	for _, e := range entries {
		p, err := pushOne(ctx, filepath.Join(images, e.Name()), prefix, ca, s)
		if err != nil {
			return pushed, err
		}
		pushed = append(pushed, p)
	}
	return pushed, nil
}

func pushOne(ctx context.Context, dir, prefix, ca string, s *session.Session) (p *image.Pushed, err error) {
	name, err := image.LayoutName(dir)
	if err != nil {
		return nil, err
	}
	// The canonical name begins with a registry's host.
	_, repository, _ := strings.Cut(name, "/")
	to := strings.TrimSuffix(prefix, "/") + "/" + repository
	err = s.Step("push "+to, func() error {
		p, err = image.PushLayout(ctx, dir, to, image.Registry{Keychain: authn.DefaultKeychain, CA: ca})
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, recordAs(s.CacheDir, name, p)
}

// recordAs records the build of an image for its names in a registry.
func recordAs(cacheDir, name string, p *image.Pushed) error {
	built, found, err := build.FindByImage(cacheDir, name)
	if err != nil || !found {
		return err
	}
	repository := p.Reference[:strings.LastIndex(p.Reference, ":")]
	return errors.Join(build.Tag(cacheDir, built, p.Reference), build.Tag(cacheDir, built, repository+"@"+p.Digest))
}

// extractImages extracts an archive's images to a temporary directory.
func extractImages(ctx context.Context, file string) (dir string, remove func() error, err error) {
	a, err := open(ctx, file)
	if err != nil {
		return "", nil, problem.Invalidf(damagedHint, "%w", err)
	}
	defer func() { err = errors.Join(err, a.close()) }()
	dir, remove, err = safeio.MakeTemp("images")
	if err != nil {
		return "", nil, err
	}
	if err := a.extractImages(dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("read bundle %s: %w", file, err), remove())
	}
	return dir, remove, nil
}

func (a *archive) extractImages(dir string) error {
	wanted := map[string]bool{}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Path, imageDir+"/") {
			wanted[f.SHA256] = true
			if f.Absent {
				return problem.Invalidf("unpack both bundles, and push the directory", "%s is in an earlier bundle", f.Path)
			}
		}
	}
	contents := filepath.Join(dir, "contents")
	if err := os.Mkdir(contents, 0o755); err != nil {
		return err
	}
	if err := a.extract(contents, func(f File) bool { return wanted[f.SHA256] }); err != nil {
		return problem.Invalidf(damagedHint, "%w", err)
	}
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Path, imageDir+"/") {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := build.CopyFile(filepath.Join(contents, f.SHA256), to, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path.Base(f.Path), err)
		}
	}
	return nil
}
