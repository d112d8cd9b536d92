package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/tlog"
)

// sumDatabase is the directory of a checksum database in a module cache, as the go command writes
// it (cmd/go/internal/modfetch/sumdb.go): the answer about a module is in
// lookup/<module>@<version>, and the tree in tile/….
type sumDatabase string

// sumAnswer is a checksum database's answer: the go.sum lines for a module with their number, and
// the signed tree at that time.
type sumAnswer struct {
	file   string
	module module.Version
	id     int64
	text   []byte
	tree   []byte
	size   int64
}

// sumDatabases returns the checksum databases of the bundles in a build cache directory. The name
// of one may contain slashes.
func sumDatabases(cacheDir string) ([]sumDatabase, error) {
	var found []sumDatabase
	root := filepath.Join(cacheDir, filepath.FromSlash(ModuleDownloads), "sumdb")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == root:
			return fs.SkipAll
		case err != nil || !entry.IsDir():
			return err
		}
		if info, err := os.Stat(filepath.Join(path, "lookup")); err == nil && info.IsDir() {
			found = append(found, sumDatabase(path))
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// answers reads a database's answers.
func (d sumDatabase) answers() ([]sumAnswer, error) {
	var all []sumAnswer
	root := filepath.Join(string(d), "lookup")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		a, err := readSumAnswer(root, path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, a)
		return nil
	})
	return all, err
}

func readSumAnswer(root, path string) (a sumAnswer, err error) {
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return a, err
	}
	escaped, version, found := strings.Cut(filepath.ToSlash(relative), "@")
	if !found {
		return a, errors.New("the name has no version")
	}
	a.file = path
	if a.module.Path, err = module.UnescapePath(escaped); err != nil {
		return a, err
	}
	if a.module.Version, err = module.UnescapeVersion(version); err != nil {
		return a, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if a.id, a.text, a.tree, err = tlog.ParseRecord(data); err != nil {
		return a, err
	}
	tree, err := tlog.ParseTree(a.tree)
	a.size = tree.N
	return a, err
}

// UnifySums changes all answers from a checksum database to one tree: the newest that one of them
// names. The tree does not depend on the question, and everything that an older tree has is in a
// newer one. Go verifies its signature.
func UnifySums(cacheDir string) error {
	databases, err := sumDatabases(cacheDir)
	if err != nil {
		return fmt.Errorf("read the answers of the checksum database: %w", err)
	}
	for _, d := range databases {
		if err := d.unify(); err != nil {
			return fmt.Errorf("unify the answers of the checksum database: %w", err)
		}
	}
	return nil
}

func (d sumDatabase) unify() error {
	all, err := d.answers()
	if err != nil {
		return err
	}
	var newest sumAnswer
	for _, a := range all {
		if a.size > newest.size {
			newest = a
		}
	}
	for _, a := range all {
		if a.size == newest.size {
			continue
		}
		record, err := tlog.FormatRecord(a.id, a.text)
		if err != nil {
			return err
		}
		// A hard link of the file in another place keeps its content.
		part := a.file + ".part"
		if err := os.WriteFile(part, append(record, newest.tree...), 0o644); err != nil {
			return err
		}
		if err := os.Rename(part, a.file); err != nil {
			return errors.Join(err, os.Remove(part))
		}
	}
	return nil
}
