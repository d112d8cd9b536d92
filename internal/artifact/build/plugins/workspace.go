package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// workspaceFile is the file of the go command that joins modules in one build.
const workspaceFile = "go.work"

// workspace is a go.work that uses a module: its modules' directories by their paths.
type workspace struct {
	file string
	work *modfile.WorkFile
	dirs map[string]string
}

// findWorkspace returns the workspace of the module at a root, or nil: the first go.work in its
// directory or above it, if that uses the module.
func findWorkspace(root string) (*workspace, error) {
	for dir := root; ; dir = filepath.Dir(dir) {
		w := &workspace{file: filepath.Join(dir, workspaceFile), dirs: map[string]string{}}
		data, err := os.ReadFile(w.file)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read its workspace: %w", err)
		}
		if w.work, err = modfile.ParseWork(w.file, data, nil); err != nil {
			return nil, fmt.Errorf("read its workspace: %w", err)
		}
		if !slices.ContainsFunc(w.work.Use, func(u *modfile.Use) bool { return w.at(u.Path) == root }) {
			return nil, nil
		}
		return w, w.readPaths()
	}
}

// at returns a directory that the workspace names.
func (w *workspace) at(path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(w.file), path)
}

// readPaths reads the modules' paths.
func (w *workspace) readPaths() error {
	for _, use := range w.work.Use {
		dir := w.at(use.Path)
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			return fmt.Errorf("%s uses %s: %w", w.file, use.Path, err)
		}
		path := modfile.ModulePath(data)
		if path == "" {
			return fmt.Errorf("%s uses %s: its go.mod has no module line", w.file, use.Path)
		}
		w.dirs[path] = dir
	}
	return nil
}

// addReplacements adds the workspace modules that a module at a root imports to its go.mod as
// replace directives, and the workspace's replace directives: a build has no workspace. They
// override the module's directives, as in the go command.
func (w *workspace) addReplacements(m *pluginModule, root string) error {
	add := func(path, version, dir string) error {
		inside, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		if inside = filepath.ToSlash(inside); !strings.HasPrefix(inside, ".") {
			inside = "./" + inside
		}
		return m.mod.AddReplace(path, version, inside, "")
	}
	for _, r := range w.work.Replace {
		switch {
		case r.Old.Path == m.path:
		case r.New.Version != "":
			if err := m.mod.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version); err != nil {
				return err
			}
		default:
			if err := add(r.Old.Path, r.Old.Version, w.at(r.New.Path)); err != nil {
				return err
			}
		}
	}
	added := map[string]bool{m.path: true}
	for next := []*pluginModule{m}; len(next) > 0; next = next[1:] {
		for _, path := range slices.Sorted(maps.Keys(w.dirs)) {
			dir := w.dirs[path]
			if added[path] || !next[0].imports(path) {
				continue
			}
			added[path] = true
			if err := add(path, "", dir); err != nil {
				return err
			}
			other, err := readModule(dir)
			if err != nil {
				return fmt.Errorf("%s uses %s: %w", w.file, dir, err)
			}
			next = append(next, other)
		}
	}
	return nil
}

// imports reports whether a Go file in the module contains an import path from another module.
func (m *pluginModule) imports(path string) bool {
	for name, data := range m.files {
		if strings.HasSuffix(name, ".go") &&
			(bytes.Contains(data, []byte(`"`+path+`"`)) || bytes.Contains(data, []byte(`"`+path+"/"))) {
			return true
		}
	}
	return false
}
