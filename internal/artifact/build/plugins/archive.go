package plugins

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/mod/modfile"
)

// maxUnpacked bounds the size of the sources in an archive, in bytes: anyone who can write a
// revision can write one.
const maxUnpacked = 64 << 20

// Archive returns a plugin's sources in a directory: the files in its module that can be compiled,
// and in the directories that its go.mod replaces modules with. The same sources give the same
// bytes. [Unpack] restores them on another machine.
func Archive(p Plugin) ([]byte, error) {
	r := &reader{read: map[string]*pluginModule{}, set: &Set{}}
	m, dir, err := r.locateDir(p)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	contents, err := m.archived(files)
	if err == nil {
		for name, data := range contents {
			files["module/"+name] = data
		}
		var packed bytes.Buffer
		if err = writeZip(&packed, files, path.Join("module", dir)); err == nil {
			return packed.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("archive plugin %s: %w", p, err)
}

// archived returns the module's contents, and adds the directories that it replaces modules with to
// files, where its go.mod finds them.
func (m *pluginModule) archived(files map[string][]byte) (map[string][]byte, error) {
	contents := m.contents()
	if m.mod == nil { // this project
		contents["go.mod"] = fmt.Appendf(nil, "module %s\n", m.path)
		return contents, nil
	}
	mod, err := modfile.Parse("go.mod", contents["go.mod"], nil)
	if err != nil {
		return nil, err
	}
	for i, other := range m.replacements {
		at := "replaced/" + strconv.Itoa(i)
		for name, data := range other.contents() {
			files[at+"/"+name] = data
		}
		for _, r := range slices.Clone(mod.Replace) {
			if r.Old.Path == other.path && r.New.Version == "" {
				if err := mod.AddReplace(r.Old.Path, r.Old.Version, "../"+at, ""); err != nil {
					return nil, err
				}
			}
		}
	}
	contents["go.mod"] = modfile.Format(mod.Syntax)
	return contents, nil
}

// writeZip writes files ordered by name. The comment is the plugin's directory.
func writeZip(to io.Writer, files map[string][]byte, dir string) error {
	archive := zip.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := archive.Create(name)
		if err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	return errors.Join(archive.SetComment(dir), archive.Close())
}

// Unpack writes the sources from [Archive] to an empty directory, and returns the plugin's
// directory. Names that leave the directory, more than 64 MiB, and sources that need a file outside
// the directory are errors.
func Unpack(archived []byte, to string) (dir string, err error) {
	archive, err := zip.NewReader(bytes.NewReader(archived), int64(len(archived)))
	if err != nil {
		return "", fmt.Errorf("unpack a plugin: %w", err)
	}
	left := int64(maxUnpacked)
	for _, file := range archive.File {
		size, err := unpackFile(file, to, left)
		if err != nil {
			return "", fmt.Errorf("unpack a plugin: %s: %w", strconv.Quote(file.Name), err)
		}
		left -= size
	}
	if !filepath.IsLocal(archive.Comment) {
		return "", fmt.Errorf("unpack a plugin: its directory %q is outside of the archive", archive.Comment)
	}
	dir = filepath.Join(to, filepath.FromSlash(archive.Comment))
	if err := confine(to, dir); err != nil {
		return "", fmt.Errorf("unpack a plugin: %w", err)
	}
	return dir, nil
}

// unpackFile writes one file of at most limit bytes, and returns its size.
func unpackFile(file *zip.File, to string, limit int64) (int64, error) {
	if !filepath.IsLocal(file.Name) || !file.Mode().IsRegular() {
		return 0, errors.New("not a file of the archive")
	}
	packed, err := file.Open()
	if err != nil {
		return 0, err
	}
	data, err := io.ReadAll(io.LimitReader(packed, limit+1))
	if err := errors.Join(err, packed.Close()); err != nil {
		return 0, err
	}
	if int64(len(data)) > limit {
		return 0, fmt.Errorf("the archive has more than %d bytes", maxUnpacked)
	}
	name := filepath.Join(to, filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return 0, err
	}
	return int64(len(data)), os.WriteFile(name, data, 0o600)
}
