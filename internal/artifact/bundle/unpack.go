package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/zip"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Unpacked is the result of Unpack.
type Unpacked struct {
	Directory string `json:"directory"`
	ID        string `json:"id"`
	Manifest
}

// Unpack adds the bundle in a file to the build cache directory of the session. All files are read
// and compared with their digests before the first one is added, and a file is added whole. digest
// is the digest that the manifest must have, "sha256:…"; if it is empty, any bundle is unpacked.
func Unpack(ctx context.Context, file, digest string, s *session.Session) (_ *Unpacked, err error) {
	a, err := open(ctx, file)
	if err != nil {
		return nil, problem.Invalidf(damagedHint, "%w", err)
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if digest != "" && digest != a.id {
		return nil, problem.Invalidf("compare it with the digest that `bundle create` printed, and copy the bundle again",
			"the manifest of %s has the digest %s, expected %s: nothing is unpacked", file, a.id, digest)
	}
	u, err := newUnpacking(a, s.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	defer func() { err = errors.Join(err, u.remove()) }()
	err = s.Step("read "+file, func() error {
		if err := a.extract(u.temporary, func(File) bool { return true }); err != nil {
			return problem.Invalidf(damagedHint, "read bundle %s: %w", file, err)
		}
		return u.findAbsent()
	})
	if err != nil {
		return nil, err
	}
	err = s.Step("unpack into "+s.CacheDir, func() error { return u.install(ctx) })
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	return &Unpacked{Directory: s.CacheDir, ID: a.id, Manifest: *a.Manifest}, nil
}

// unpacking is a run of Unpack.
type unpacking struct {
	*archive
	directory, temporary string
	remove               func() error
	// contents are the contents' files by digest.
	contents map[string]string
}

func newUnpacking(a *archive, directory string) (*unpacking, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	temporary, remove, err := safeio.MakeTempIn(directory, "unpack-")
	if err != nil {
		return nil, err
	}
	u := &unpacking{archive: a, directory: directory, temporary: temporary, remove: remove, contents: map[string]string{}}
	for _, f := range a.stored() {
		u.contents[f.SHA256] = filepath.Join(temporary, f.SHA256)
	}
	return u, nil
}

func (u *unpacking) path(name string) string {
	return filepath.Join(u.directory, filepath.FromSlash(name))
}

// findAbsent finds the contents that earlier bundles brought, by their manifests.
func (u *unpacking) findAbsent() error {
	if u.Since == nil {
		return nil
	}
	places, err := u.unpackedBefore()
	if err != nil {
		return err
	}
	for _, f := range u.Files {
		if !f.Absent || u.contents[f.SHA256] != "" {
			continue
		}
		for _, place := range places[f.SHA256] {
			if _, sum, err := build.HashFile(u.path(place)); err == nil && sum == f.SHA256 {
				u.contents[f.SHA256] = u.path(place)
				break
			}
		}
		if u.contents[f.SHA256] == "" {
			return problem.Invalidf(
				fmt.Sprintf("unpack the bundle of %s with the manifest %s first", strings.Join(u.Since.Releases, ", "), u.Since.ID),
				"the bundle holds only what an earlier one does not have, and %s does not have %s (sha256:%s)",
				u.directory, f.Path, f.SHA256)
		}
	}
	return nil
}

// unpackedBefore returns the paths of files from earlier bundles by digest.
func (u *unpacking) unpackedBefore() (map[string][]string, error) {
	places := map[string][]string{}
	entries, err := os.ReadDir(u.path(manifestDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(u.path(manifestDir), e.Name()))
		if err != nil {
			return nil, err
		}
		m, err := parseManifest(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(u.path(manifestDir), e.Name()), err)
		}
		for _, f := range m.Files {
			places[f.SHA256] = append(places[f.SHA256], f.Path)
		}
	}
	return places, nil
}

// install moves the files to their places. The manifest comes last.
func (u *unpacking) install(ctx context.Context) error {
	if err := u.unzipGo(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range u.Files {
		if err := u.place(f); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	if err := build.UnifySums(u.directory); err != nil {
		return err
	}
	part := filepath.Join(u.temporary, manifestFile)
	to := filepath.Join(u.path(manifestDir), strings.TrimPrefix(u.id, "sha256:")+".json")
	return errors.Join(os.WriteFile(part, u.text, 0o644), os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(part, to))
}

// place links a content to a file's path.
func (u *unpacking) place(f File) error {
	from, to := u.contents[f.SHA256], u.path(f.Path)
	if from == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// A link and a rename replace the file atomically. A file system without links gets a copy, and
	// so does a content that both an executable and another file have.
	part := filepath.Join(u.temporary, "part")
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.Mode().Perm() != f.mode() || os.Link(from, part) != nil {
		if err := build.CopyFile(from, part, f.mode()); err != nil {
			return err
		}
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	// rename does nothing if both names are of the same file.
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unzipGo unpacks the bundle's newest Go, so that a machine without Go can build.
func (u *unpacking) unzipGo(ctx context.Context) error {
	newest := build.LatestGo(u.Go)
	for _, f := range u.Files {
		m, version, isGo := build.GoArchive(strings.TrimPrefix(f.Path, downloads+"/"))
		to := build.GoPath(u.directory, newest)
		if !isGo || version != newest {
			continue
		}
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		part := filepath.Join(u.temporary, "go")
		if err := errors.Join(zip.Unzip(part, m, u.contents[f.SHA256]), finishGo(part)); err != nil {
			return fmt.Errorf("unpack Go %s: %w", newest, err)
		}
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(part, to))
	}
	return nil
}

// finishGo finishes an unpacked Go as the go command does with its own module
// (cmd/go/internal/toolchain/select.go): a module has no executable files and no nested go.mod.
func finishGo(dir string) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		switch {
		case build.IsGoProgram(name):
			return os.Chmod(file, 0o755)
		case entry.Name() == "_go.mod":
			return build.CopyFile(file, filepath.Join(filepath.Dir(file), "go.mod"), 0o644)
		}
		return nil
	})
}
