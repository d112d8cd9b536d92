package plugins

import (
	"bytes"
	"fmt"
	gobuild "go/build"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// embedded adds the files that the packages of the module embed. The compiler evaluates the
// patterns again and reports patterns that are invalid or match nothing.
func (r *moduleReader) embedded() error {
	for dir := range r.embeddingDirs() {
		// The platform is not known yet, so all files count. Whether a file is valid is for the
		// compiler to decide: it may not be compiled at all.
		all := gobuild.Context{Compiler: "gc", UseAllFiles: true}
		pkg, _ := all.ImportDir(filepath.Join(r.root, filepath.FromSlash(dir)), 0)
		for _, pattern := range pkg.EmbedPatterns {
			if err := r.embed(dir, pattern); err != nil {
				return fmt.Errorf("package %s: pattern %s: %w", path.Join(".", dir), pattern, err)
			}
		}
	}
	return nil
}

// embeddingDirs returns the directories of the sources that may have a go:embed directive.
func (r *moduleReader) embeddingDirs() map[string]bool {
	dirs := map[string]bool{}
	for name, data := range r.files {
		if path.Ext(name) == ".go" && bytes.Contains(data, []byte("//go:embed")) {
			dirs[path.Dir(name)] = true
		}
	}
	return dirs
}

// embed adds the files that match one pattern of a package, as resolveEmbed in cmd/go/internal/load
// does: directories are read recursively, without hidden files unless the pattern starts with
// "all:".
func (r *moduleReader) embed(dir, pattern string) error {
	pattern, hidden := strings.CutPrefix(pattern, "all:")
	pkg, err := fs.Sub(r.fs, dir)
	if err != nil {
		return err
	}
	// The only error of Glob is an invalid pattern, as "." is one too: see embedded.
	matches, _ := fs.Glob(pkg, pattern)
	if pattern == "." {
		matches = nil
	}
	for _, match := range matches {
		if ok, err := canEmbed(pkg, match); err != nil {
			return err
		} else if !ok {
			continue
		}
		err := fs.WalkDir(pkg, match, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != match && (!hidden && isHidden(entry.Name()) || !isInModule(pkg, name, entry.IsDir())):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case !entry.Type().IsRegular() || r.files[path.Join(dir, name)] != nil:
				return nil
			}
			return r.read(path.Join(dir, name), entry)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// canEmbed reports whether a match belongs to its package's module. It returns an error for an
// irregular file, such as a symbolic link.
func canEmbed(pkg fs.FS, match string) (bool, error) {
	for name := match; name != "."; name = path.Dir(name) {
		info, err := fs.Lstat(pkg, name)
		switch {
		case err != nil:
			return false, err
		case !info.IsDir() && (name != match || !info.Mode().IsRegular()):
			return false, fmt.Errorf("cannot embed irregular file %s", name)
		case !isInModule(pkg, name, info.IsDir()):
			return false, nil
		}
	}
	return true, nil
}

func isHidden(base string) bool { return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") }

// isInModule reports whether a file or directory belongs to its directory's module. Nested modules
// and version control files do not.
func isInModule(files fs.FS, name string, isDir bool) bool {
	switch path.Base(name) {
	case ".bzr", ".git", ".hg", ".svn":
		return false
	}
	if !isDir {
		return true
	}
	_, err := fs.Stat(files, path.Join(name, "go.mod"))
	return err != nil
}
