// Package bundle packs everything that builds, labs and simulations need on a machine without a
// network: [Create] writes it to an archive, [Unpack] adds it to a build cache directory, where the
// other commands find it, and [Push] copies its images to a registry.
//
// An archive is a tar file with manifest.json and the files that it lists, each content once, in
// the manifest's order. An archive is untrusted input: a file is used only if its digest is the one
// in the manifest, and nothing is added to the directory before all files were read.
package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
)

const (
	// format is raised when older versions of pmk-sched cannot read an archive.
	format = 1
	// manifestFile is the first file of an archive.
	manifestFile = "manifest.json"

	// Bundle directories below the build cache directory. The manifests of unpacked bundles are in
	// manifestDir.
	imageDir    = "bundle/images"
	manifestDir = "bundle/manifests"
	// SelfPath is the pmk-sched in an archive.
	SelfPath = "bundle/bin/pmk-sched"

	// Limits of untrusted archives, in bytes and files.
	maxManifest = 64 << 20
	maxFile     = 4 << 30
	maxTotal    = 256 << 30
	maxFiles    = 400_000
	maxPath     = 1024
)

// roots returns the directories below which a bundle's files are.
func roots() []string {
	return []string{"build/binaries/", "build/facts/", "bundle/bases/", "bundle/bin/", imageDir + "/",
		downloads + "/", "published/"}
}

// Manifest describes a bundle.
type Manifest struct {
	Format int `json:"format"`
	// PMKSched is the pmk-sched version in the bundle.
	PMKSched string `json:"pmkSched"`
	// Releases are the Kubernetes releases, and Go the Go versions.
	Releases []string           `json:"releases"`
	Go       []string           `json:"go"`
	Base     string             `json:"base"`
	Images   []Image            `json:"images"`
	Programs []programs.Program `json:"programs"`
	// Since is the earlier bundle with the absent files. It is nil if no file is absent.
	Since *Earlier `json:"since,omitempty"`
	// Files are sorted by path.
	Files []File `json:"files"`
}

// Image is an image of a bundle.
type Image struct {
	Reference string   `json:"reference"`
	Digest    string   `json:"digest"`
	Platforms []string `json:"platforms"`
	Plugins   []string `json:"plugins"`
	// Directory is the OCI layout.
	Directory string `json:"directory"`
}

// Earlier names a bundle.
type Earlier struct {
	// ID is its manifest's digest: "sha256:…".
	ID       string   `json:"id"`
	Releases []string `json:"releases"`
}

// File is a file of a bundle.
type File struct {
	// Path is below the build cache directory.
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
	// Absent reports that the content is in the earlier bundle and not in this archive.
	Absent bool `json:"absent,omitempty"`
}

// mode returns the file's permissions.
func (f File) mode() fs.FileMode {
	if f.Executable {
		return 0o755
	}
	return 0o644
}

// stored returns the contents that the archive has, in their order, each as its first file.
func (m *Manifest) stored() []File {
	var list []File
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !f.Absent && !seen[f.SHA256] {
			seen[f.SHA256] = true
			list = append(list, f)
		}
	}
	return list
}

// parseManifest reads and checks a manifest.
func parseManifest(text []byte) (*Manifest, error) {
	var m Manifest
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("parse %s: %w", manifestFile, err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("%s: expected format %d, got %d: another version of pmk-sched wrote it", manifestFile, format,
			m.Format)
	}
	return &m, m.check()
}

func (m *Manifest) check() error {
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%s lists %d files, the limit is %d", manifestFile, len(m.Files), maxFiles)
	}
	contents, names := map[string]File{}, map[string]bool{}
	var total int64
	for i, f := range m.Files {
		if err := f.check(); err != nil {
			return fmt.Errorf("%s: file %.200q: %w", manifestFile, f.Path, err)
		}
		if i > 0 && m.Files[i-1].Path >= f.Path {
			return fmt.Errorf("%s: file %.200q is not in order", manifestFile, f.Path)
		}
		names[f.Path] = true
		first, known := contents[f.SHA256]
		if known && (first.Size != f.Size || first.Absent != f.Absent) {
			return fmt.Errorf("%s: files %.200q and %.200q contradict each other", manifestFile, first.Path, f.Path)
		}
		if contents[f.SHA256] = f; !known {
			total += f.Size
		}
		if f.Absent && m.Since == nil {
			return fmt.Errorf("%s: file %.200q is absent, and no earlier bundle is named", manifestFile, f.Path)
		}
	}
	if total > maxTotal {
		return fmt.Errorf("%s lists %d bytes, the limit is %d", manifestFile, total, int64(maxTotal))
	}
	for _, f := range m.Files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if names[dir] {
				return fmt.Errorf("%s: %.200q is a file and a directory", manifestFile, dir)
			}
		}
	}
	return m.checkImages()
}

// checkImages checks the images' directories, which [Push] reads.
func (m *Manifest) checkImages() error {
	for _, i := range m.Images {
		if !fs.ValidPath(i.Directory) || path.Dir(i.Directory) != imageDir {
			return fmt.Errorf("%s: image %.200q is not in %s", manifestFile, i.Reference, imageDir)
		}
	}
	return nil
}

func (f File) check() error {
	digest, err := hex.DecodeString(f.SHA256)
	switch {
	case !fs.ValidPath(f.Path) || strings.ContainsAny(f.Path, "\\\x00") || len(f.Path) > maxPath:
		return errors.New("the path is not valid")
	case err != nil || len(digest) != 32 || strings.ToLower(f.SHA256) != f.SHA256:
		return errors.New("the digest is not a SHA-256 digest")
	case f.Size < 0 || f.Size > maxFile:
		return fmt.Errorf("the size %d is not between 0 and %d", f.Size, int64(maxFile))
	}
	for _, root := range roots() {
		if strings.HasPrefix(f.Path, root) {
			return nil
		}
	}
	return errors.New("the path is outside of the directories of a bundle")
}
