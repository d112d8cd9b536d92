package plugins

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// locate reads a plugin's module and returns it with the package's directory in it.
func (r *reader) locate(ctx context.Context, p Plugin) (*pluginModule, string, error) {
	switch {
	case p.Builtin != "":
		m, err := r.apiModule()
		if err != nil {
			return nil, "", err
		}
		if names := builtins(m); !slices.Contains(names, p.Builtin) {
			return nil, "", p.invalidf(
				"the bundled plugins are "+strings.Join(names, ", ")+"; see `pmk-sched plugin list`",
				"no bundled plugin with this name")
		}
		return m, builtinDir + "/" + p.Builtin, nil
	case p.Dir != "":
		return r.locateDir(p)
	}
	m, err := r.download(ctx, p)
	if err != nil {
		return nil, "", err
	}
	dir, _ := m.dirOf(cmp.Or(p.Package, p.Module))
	return m, path.Clean(dir), nil
}

// locateDir reads the module that contains a directory.
func (r *reader) locateDir(p Plugin) (*pluginModule, string, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, "", p.invalidf("", "%w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, "", p.invalidf("", "no such directory")
	}
	root, found := moduleRoot(dir)
	if !found {
		return nil, "", p.invalidf("make it a module with `go mod init`, or start with `pmk-sched plugin new`",
			"neither the directory nor a parent has a go.mod")
	}
	inside, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, "", p.invalidf("", "%w", err)
	}
	m, err := r.moduleIn(root, shownRoot(p.Dir, inside))
	if err != nil {
		return nil, "", p.invalidf("", "%w", err)
	}
	return m, filepath.ToSlash(inside), nil
}

// shownRoot returns a module's root as the user would write it. given is the directory that the
// user wrote, and inside its path in the module.
func shownRoot(given, inside string) string {
	given = filepath.Clean(given)
	if inside == "." {
		return given
	}
	for range strings.Split(filepath.ToSlash(inside), "/") {
		if given == "." || given == ".." || strings.HasSuffix(given, string(filepath.Separator)+"..") {
			given = filepath.Join(given, "..")
			continue
		}
		given = filepath.Dir(given)
	}
	return given
}

// moduleIn reads the module at a root directory, and the directories that its go.mod or its
// workspace replaces modules with.
func (r *reader) moduleIn(root, shownAs string) (*pluginModule, error) {
	if m, found := r.read[root]; found {
		return m, nil
	}
	m, err := readModule(root)
	if err != nil {
		return nil, err
	}
	m.shownAs, m.platform = shownAs, r.options.Platform
	r.read[root] = m
	if m.path == APIModule {
		// A clone of this project: its own package scheduler is the one to use.
		return r.useAPI(os.DirFS(root), shownAs)
	}
	r.set.modules = append(r.set.modules, m)
	w, err := findWorkspace(root)
	if err != nil {
		return nil, err
	}
	if w != nil {
		if err := w.addReplacements(m, root); err != nil {
			return nil, err
		}
	}
	for _, replaced := range m.mod.Replace {
		if replaced.New.Version != "" || replaced.Old.Path == APIModule {
			continue
		}
		at := filepath.FromSlash(replaced.New.Path)
		if !filepath.IsAbs(at) {
			at = filepath.Join(root, at)
		}
		if known, found := r.read[at]; found {
			m.replacements = append(m.replacements, known)
			continue
		}
		other, err := readModule(at)
		if err != nil {
			return nil, fmt.Errorf("its go.mod replaces %s with %s: %w", replaced.Old.Path, replaced.New.Path, err)
		}
		other.path, other.shownAs = replaced.Old.Path, filepath.Join(shownAs, replaced.New.Path)
		other.platform = r.options.Platform
		r.read[at], m.replacements = other, append(m.replacements, other)
		r.set.modules = append(r.set.modules, other)
	}
	return m, nil
}

// download reads a module at a version.
func (r *reader) download(ctx context.Context, p Plugin) (*pluginModule, error) {
	name := p.Module + "@" + p.Version
	if m, found := r.read[name]; found {
		return m, nil
	}
	dir, err := r.options.Download(ctx, p.Module, p.Version)
	if err != nil {
		return nil, err
	}
	m, err := readModule(dir)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p, err)
	}
	m.shownAs, m.platform = name, r.options.Platform
	r.read[name] = m
	r.set.modules = append(r.set.modules, m)
	return m, nil
}
