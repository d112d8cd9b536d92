package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// locate reads the module of a plugin and says in which folder of it the package is.
func (r *pluginReader) locate(ctx context.Context, p Plugin) (*pluginModule, string, error) {
	switch {
	case p.Builtin != "":
		m, err := r.apiModule()
		if err != nil {
			return nil, "", err
		}
		dir := builtinFolder + "/" + p.Builtin
		if !slices.Contains(builtins(m), p.Builtin) {
			return nil, "", &Error{
				Step: "read plugin " + p.String(), Cause: CauseInput, Message: "there is no shipped plugin of that name",
				Try: "shipped are " + strings.Join(builtins(m), ", ") + "; `pmk-sched plugin list` says more",
			}
		}
		return m, dir, nil
	case p.Dir != "":
		return r.locateFolder(p)
	}
	m, err := r.downloaded(ctx, p)
	if err != nil {
		return nil, "", err
	}
	dir, _ := m.folderOf(cmp.Or(p.Package, p.Module))
	return m, path.Clean(dir), nil
}

// locateFolder reads the module that a folder belongs to.
func (r *pluginReader) locateFolder(p Plugin) (*pluginModule, string, error) {
	step := "read plugin " + p.String()
	refuse := func(message, try string) error {
		return &Error{Step: step, Cause: CauseInput, Message: message, Try: try}
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, "", refuse(err.Error(), "")
	}
	if !isFolder(dir) {
		return nil, "", refuse("there is no such folder", "")
	}
	top, found := moduleTop(dir)
	if !found {
		return nil, "", refuse("neither the folder nor one above it has a go.mod", "make it a module with `go mod init`, or begin with `pmk-sched plugin new`")
	}
	inside, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, "", refuse(err.Error(), "")
	}
	m, err := r.folder(top, placeOf(p.Dir, inside))
	if err != nil {
		return nil, "", refuse(err.Error(), "")
	}
	return m, filepath.ToSlash(inside), nil
}

// placeOf is the module's top folder as a person would write it, who wrote a
// folder that lies inside below it.
func placeOf(given, inside string) string {
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

// folder reads the module at the top of a folder, and those that its go.mod
// puts in the place of others by naming their folder.
func (r *pluginReader) folder(top, place string) (*pluginModule, error) {
	if m, found := r.read[top]; found {
		return m, nil
	}
	m, err := readModule(top)
	if err != nil {
		return nil, err
	}
	m.place, m.platform = place, r.platform
	r.read[top] = m
	if m.path == apiModule {
		// A clone of this project: its own package scheduler is the one to use.
		return r.useAPI(os.DirFS(top), place)
	}
	r.set.modules = append(r.set.modules, m)
	for _, replaced := range m.mod.Replace {
		if replaced.New.Version != "" || replaced.Old.Path == apiModule {
			continue
		}
		at := filepath.FromSlash(replaced.New.Path)
		if !filepath.IsAbs(at) {
			at = filepath.Join(top, at)
		}
		if _, found := r.read[at]; found {
			continue
		}
		other, err := readModule(at)
		if err != nil {
			return nil, fmt.Errorf("its go.mod replaces %s by %s: %w", replaced.Old.Path, replaced.New.Path, err)
		}
		other.path, other.place, other.platform = replaced.Old.Path, filepath.Join(place, replaced.New.Path), r.platform
		r.read[at] = other
		r.set.modules = append(r.set.modules, other)
	}
	return m, nil
}

// downloaded reads a module at a version, which the person's own Go downloads
// unless that was done before.
func (r *pluginReader) downloaded(ctx context.Context, p Plugin) (*pluginModule, error) {
	name := p.Module + "@" + p.Version
	if m, found := r.read[name]; found {
		return m, nil
	}
	step := "read plugin " + p.String()
	var where struct{ Dir string }
	place := r.cache.fact("plugins", name)
	if found, err := readJSON(place, &where); err != nil || !found || !isFolder(where.Dir) {
		err := r.step("download "+name, func() error {
			answers, err := r.download(ctx, step, name)
			if err != nil {
				return err
			}
			if failed := answers[0].Error; failed != "" {
				return unknownModule(name, diagnose(step, redact(failed), errors.New("go mod download failed")))
			}
			where.Dir = answers[0].Dir
			return writeJSON(place, where)
		})
		if err != nil {
			return nil, err
		}
	}
	m, err := readModule(where.Dir)
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	m.version, m.place, m.platform = p.Version, name, r.platform
	r.read[name] = m
	r.set.modules = append(r.set.modules, m)
	return m, nil
}

func unknownModule(name string, failed *Error) *Error {
	if failed.Cause == CauseModuleMissing {
		failed.Cause, failed.Modules = CauseInput, []string{name}
		failed.Message = "the module proxy does not serve " + name
		failed.Try = "see that module and version are written as they are published; GOPROXY and GOPRIVATE say where private modules are"
	}
	return failed
}
