package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Source is an image to read from: exactly one of Reference, Archive and Layout
// is set.
type Source struct {
	// Reference names an image in a registry, or in Containerd.
	Reference string
	// Containerd is the socket of the containerd that has Reference; empty means
	// that it is in a registry.
	Containerd string
	// Archive is a docker archive that holds one image.
	Archive string
	// Layout is an OCI layout folder.
	Layout string
	// Insecure allows plain HTTP for Reference.
	Insecure bool
	// Keychain finds the credentials for Reference; nil means none.
	Keychain authn.Keychain
}

// maxLinks bounds how many links are followed to a file, as Linux does.
const maxLinks = 40

// ExtractFile writes the file at the absolute path file of the image, as a
// container would see it (layers flattened, links followed), to the file to,
// which is replaced as a whole or not touched. to is executable if the file is.
//
// An empty file means the program the image starts; an empty platform means that
// of this machine. If the image has no such file, the error is fs.ErrNotExist.
func ExtractFile(ctx context.Context, src Source, file, platform, to string) (err error) {
	if platform == "" {
		platform = hostPlatform()
	}
	if src.Containerd != "" {
		exported, err := exportBeside(ctx, src, platform, to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove(exported)) }()
		src = Source{Archive: exported}
	}
	base := Base{Reference: src.Reference, Archive: src.Archive, Layout: src.Layout, Insecure: src.Insecure}
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
	if file == "" {
		if file, err = program(c.image); err != nil {
			return fmt.Errorf("read image %s: %w", base, err)
		}
	}
	err = writeFile(ctx, to, func(f *os.File) error { return extract(ctx, c.image, file, f) })
	if err != nil {
		return fmt.Errorf("read %s from image %s: %w", file, base, err)
	}
	return nil
}

// exportBeside brings an image out of containerd into a file in the folder of to.
func exportBeside(ctx context.Context, src Source, platform, to string) (string, error) {
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

// program is the first absolute path in what the image starts.
func program(img v1.Image) (string, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	words := slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	for _, w := range words {
		if path.IsAbs(w) {
			return w, nil
		}
	}
	return "", fmt.Errorf("no absolute path in its entrypoint and command, %q: %w", words, fs.ErrNotExist)
}

// extract copies the file of the flattened image to f. The flattened layers come
// as a stream with the topmost layer first, in which a link may come after its
// target; so the stream is read again for each link that is followed.
func extract(ctx context.Context, img v1.Image, file string, f *os.File) error {
	name := strings.TrimPrefix(path.Clean(file), "/")
	for range maxLinks {
		links, found, err := extractRegular(ctx, img, name, f)
		if found || err != nil {
			return err
		}
		target, linked := follow(name, links)
		if !linked {
			return fs.ErrNotExist
		}
		name = target
	}
	return errors.New("too many links")
}

// extractRegular copies name to f if it is a regular file. If it is not, it
// returns the links of the image, absolute or relative as they are in it; hard
// links are given as absolute ones.
func extractRegular(ctx context.Context, img v1.Image, name string, f *os.File) (links map[string]string, found bool, err error) {
	flat := mutate.Extract(img)
	defer func() { err = errors.Join(err, flat.Close()) }()
	links = map[string]string{}
	tr := tar.NewReader(contextReader{ctx, flat})
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return links, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		at := strings.TrimPrefix(path.Clean(h.Name), "/")
		switch h.Typeflag {
		case tar.TypeSymlink:
			links[at] = h.Linkname
		case tar.TypeLink:
			links[at] = "/" + strings.TrimPrefix(h.Linkname, "/")
		case tar.TypeReg:
			if at == name {
				return nil, true, copyOut(tr, h, f)
			}
		}
	}
}

func copyOut(r io.Reader, h *tar.Header, f *os.File) error {
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if h.Mode&0o111 != 0 {
		return f.Chmod(0o755)
	}
	return nil
}

// follow replaces the first link on the way to name by what it points to. Links
// that lead out of the image end at its root.
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
