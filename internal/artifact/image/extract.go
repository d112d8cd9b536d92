package image

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// Source is an image to read. Exactly one of Reference, Archive and Layout is set.
type Source struct {
	// Reference names an image in a registry, or in Containerd.
	Reference string
	// Containerd is the socket of the containerd that stores Reference. If it is empty, Reference
	// is in a registry.
	Containerd string
	// Archive is a docker archive with one image.
	Archive string
	// Layout is an OCI layout directory.
	Layout string
	// Keychain provides the credentials for Reference. If it is nil, none are used.
	Keychain authn.Keychain

	limits limits // by default defaultLimits
}

func (src Source) bounds() limits { return cmp.Or(src.limits, defaultLimits()) }

// maxLinks is the maximum number of links followed to a file, as in Linux.
const maxLinks = 40

// ExtractFile writes the file at the absolute path file of the image, as a container sees it
// (layers flattened, links followed), to the file to, which is replaced atomically. to is
// executable if the file is. An image that is larger than 8 GiB uncompressed, or a file larger than
// 512 MiB, is an error.
//
// An empty platform means this machine's platform. If the file does not exist, the error is
// fs.ErrNotExist.
func ExtractFile(ctx context.Context, src Source, file, platform, to string) error {
	return src.open(ctx, platform, to, func(img v1.Image, name string) error {
		err := safeio.WriteFile(ctx, to, 0o644, func(f *os.File) error { return extract(ctx, img, file, src.bounds(), f) })
		if err != nil {
			return fmt.Errorf("read %s from image %s: %w", file, name, err)
		}
		return nil
	})
}

// open finds the image for a platform and calls read with it and its name. An image in containerd
// is exported to the directory of near meanwhile.
func (src Source) open(
	ctx context.Context, platform, near string, read func(img v1.Image, name string) error,
) (err error) {
	if platform == "" {
		platform = hostPlatform()
	}
	if src.Containerd != "" {
		exported, failed := exportNear(ctx, src, platform, near)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, remove(exported)) }()
		src = Source{Archive: exported}
	}
	base := Base{Reference: src.Reference, Archive: src.Archive, Layout: src.Layout}
	if err := base.check(); err != nil {
		return err
	}
	found, _, err := base.candidates(ctx, src.Keychain)
	if err != nil {
		return err
	}
	c, err := choose(found, platform, "image "+base.String())
	if err != nil {
		return err
	}
	if src.Archive == "" {
		if err := checkConfigSize(c.image); err != nil {
			return fmt.Errorf("read image %s: %w", base, err)
		}
	}
	return read(c.image, base.String())
}

// exportNear exports an image from containerd to a file in the directory of to.
func exportNear(ctx context.Context, src Source, platform, to string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(to), ".export.*")
	if err != nil {
		return "", fmt.Errorf("export image: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, remove(f.Name()))
	}
	if err := newContainerd(src.Containerd).export(ctx, src.Reference, platform, f.Name()); err != nil {
		return "", errors.Join(err, remove(f.Name()))
	}
	return f.Name(), nil
}

// extract copies the flattened image's file to f. The topmost layer is read first, and a link may
// come after its target, so the image is read again for a link's target.
func extract(ctx context.Context, img v1.Image, file string, l limits, f *os.File) error {
	name := strings.TrimPrefix(path.Clean(file), "/")
	links, found, err := extractRegular(ctx, img, name, l, f)
	if found || err != nil {
		return err
	}
	target, err := followAll(name, links)
	if err != nil || target == name {
		return cmp.Or(err, fs.ErrNotExist)
	}
	if _, found, err = extractRegular(ctx, img, target, l, f); err == nil && !found {
		err = fs.ErrNotExist
	}
	return err
}

// extractRegular copies name to f if it is a regular file. Otherwise it returns the image's links.
func extractRegular(
	ctx context.Context, img v1.Image, name string, l limits, f *os.File,
) (links map[string]string, found bool, err error) {
	w := &walker{limits: l, links: map[string]string{}}
	w.visit = func(at string, h *tar.Header, r io.Reader) error {
		if at != name {
			return nil
		}
		found = true
		return copyOut(r, h, l, f)
	}
	err = w.walk(ctx, img)
	return w.links, found, err
}

func copyOut(r io.Reader, h *tar.Header, l limits, f *os.File) error {
	tooLarge := fmt.Errorf("the program has more than %d bytes", l.program)
	if _, err := io.Copy(f, &safeio.LimitedReader{R: r, N: l.program, Err: tooLarge}); err != nil {
		return err
	}
	if h.Mode&0o111 != 0 {
		return f.Chmod(0o755)
	}
	return nil
}

// followAll follows all links in the path name.
func followAll(name string, links map[string]string) (string, error) {
	for range maxLinks + 1 {
		target, linked := follow(name, links)
		if !linked {
			return name, nil
		}
		name = target
	}
	return "", errors.New("too many links")
}

// follow replaces the first link in the path name with its target. Links out of the image end at
// its root.
func follow(name string, links map[string]string) (string, bool) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		to, ok := links[at]
		if !ok {
			continue
		}
		if !path.IsAbs(to) {
			to = path.Join("/", path.Dir(at), to)
		}
		rest := path.Join(parts[i+1:]...)
		return strings.TrimPrefix(path.Join("/", to, rest), "/"), true
	}
	return "", false
}

// remove is os.Remove for a file that may not exist.
func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
