package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

const (
	projectURL = "https://github.com/pmk-sched/pmk-sched"
	goRoot     = "/usr/local/go"
	// certificatesPath is the first file that Go programs read root certificates from.
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
)

// platforms are the images' platforms.
func platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// images builds the images for pmk-sched, for pmk-sched with Go, which `build` runs, and for
// pmk-extender. It writes each to an OCI archive.
func (r release) images(ctx context.Context) error {
	certificates := filepath.Join(r.stage, path.Base(certificatesPath))
	if err := writeFile(certificates, writeCertificates); err != nil {
		return fmt.Errorf("write root certificates: %w", err)
	}
	roots := image.File{Path: certificatesPath, Source: certificates, Mode: 0o644}
	golang, err := r.goImage(ctx, roots)
	if err != nil {
		return fmt.Errorf("build an image of Go: %w", err)
	}
	empty := image.Base{Empty: true}
	withGo := r.program(image.SelfPath, image.Base{Layout: golang})
	withGo.Env = []string{"PATH=/usr/local/bin:" + goRoot + "/bin:/usr/bin:/bin"}
	return errors.Join(
		r.image(ctx, "", r.program(image.SelfPath, empty, roots)),
		r.image(ctx, "-go", withGo),
		r.image(ctx, "", r.program(image.ExtenderPath, empty)))
}

// program returns the options for a program's image with more files.
func (r release) program(at string, base image.Base, more ...image.File) image.Options {
	name := path.Base(at)
	labels := image.Description{Title: name, Version: r.version, URL: projectURL}.Labels()
	o := image.Options{
		Base: base, Platforms: platforms(), Files: map[string][]image.File{}, Entrypoint: []string{at},
		Labels: labels, Annotations: labels,
	}
	for _, platform := range platforms() {
		o.Files[platform] = append([]image.File{{Path: at, Source: filepath.Join(r.directory(platform), name)}}, more...)
	}
	return o
}

// directory is the directory with the programs for a platform.
func (r release) directory(platform string) string {
	return filepath.Join(r.stage, strings.ReplaceAll(platform, "/", "_"))
}

// image builds an image, writes it to PROGRAM_VERSION[SUFFIX]_image.tar.
func (r release) image(ctx context.Context, suffix string, o image.Options) error {
	built, err := image.Build(ctx, o)
	if err != nil {
		return err
	}
	program, tag := path.Base(o.Entrypoint[0]), r.version+suffix
	layout := filepath.Join(r.stage, program+suffix)
	if err := image.WriteLayout(ctx, built, "localhost/"+program+":"+tag, layout); err != nil {
		return err
	}
	files, err := filesBelow(layout, ".")
	if err != nil {
		return err
	}
	to := filepath.Join(r.dist, program+"_"+tag+"_image.tar")
	if err := writeFile(to, func(w io.Writer) error { return writeTar(w, files, time.Unix(0, 0)) }); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return nil
}

// goImage returns an OCI layout with each platform's Go toolchain: a layer that several versions of
// pmk-sched share.
func (r release) goImage(ctx context.Context, roots image.File) (layout string, err error) {
	o := image.Options{Base: image.Base{Empty: true}, Platforms: platforms(), Files: map[string][]image.File{}}
	for _, platform := range platforms() {
		files, err := toolchain(filepath.Join(r.directory(platform), "go"))
		if err != nil {
			return "", err
		}
		o.Files[platform] = append(files, roots)
	}
	built, err := image.Build(ctx, o)
	if err != nil {
		return "", err
	}
	layout = filepath.Join(r.stage, "go")
	return layout, image.WriteLayout(ctx, built, "localhost/go:"+r.version, layout)
}

// toolchain returns the Go toolchain files that a build without cgo needs.
func toolchain(root string) ([]image.File, error) {
	var files []image.File
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir(), strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".syso"):
			return nil
		}
		mode := int64(0o644)
		if build.IsGoProgram(name) {
			mode = 0o755
		}
		files = append(files, image.File{
			Path: path.Join(goRoot, name), Source: filepath.Join(root, filepath.FromSlash(name)), Mode: mode,
		})
		return nil
	})
	return files, err
}

// writeCertificates writes the root certificates that Mozilla trusts without further constraints.
func writeCertificates(w io.Writer) error {
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return nil
}
