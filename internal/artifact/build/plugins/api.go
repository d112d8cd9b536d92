package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// APIModule is the path of this project's module, and APIDir its directory in a generated module.
const (
	APIModule = "github.com/pmk-sched/pmk-sched"
	APIDir    = "pmk-sched"
)

// Directories of this project's module.
const (
	apiDir      = "scheduler"
	adapterDir  = "scheduler/adapter"
	extenderDir = "scheduler/extender"
	builtinDir  = "scheduler/plugins"
	examplesDir = "examples"
)

// apiModule returns the sources of package scheduler, the adapter and the bundled plugins.
func (r *reader) apiModule() (*pluginModule, error) {
	if r.set.api != nil {
		return r.set.api, nil
	}
	if r.options.Sources == nil {
		return nil, problem.Invalidf("", "read plugins: the sources of package scheduler are required")
	}
	return r.useAPI(r.options.Sources, APIModule)
}

// useAPI reads package scheduler's sources from a module's root.
func (r *reader) useAPI(sources fs.FS, place string) (*pluginModule, error) {
	m := &pluginModule{path: APIModule, shownAs: place, dir: APIDir, platform: r.options.Platform}
	var err error
	if m.files, err = readSources(sources); err != nil {
		return nil, err
	}
	if r.api, err = readAPI(m); err != nil {
		return nil, err
	}
	r.set.api = m
	return m, nil
}

// readSources reads the Go files below the directory scheduler, and a clone's example plugins. The
// extender is left out, since it is not part of a scheduler.
func readSources(sources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, top := range []string{apiDir, examplesDir} {
		err := fs.WalkDir(sources, top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && name == examplesDir:
				return nil
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || name == extenderDir):
				return fs.SkipDir
			case entry.IsDir() || !IsSource(name):
				return nil
			}
			files[name], err = fs.ReadFile(sources, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Builtins returns the bundled plugins' names from the sources of this project's module.
func Builtins(sources fs.FS) ([]string, error) {
	files, err := readSources(sources)
	if err != nil {
		return nil, fmt.Errorf("list bundled plugins: %w", err)
	}
	return builtins(&pluginModule{files: files}), nil
}

func builtins(api *pluginModule) []string {
	names := map[string]bool{}
	for name := range api.files {
		if rest, found := strings.CutPrefix(name, builtinDir+"/"); found {
			plugin, file, below := strings.Cut(rest, "/")
			if below && !strings.Contains(file, "/") {
				names[plugin] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// APIFiles returns the files from package scheduler's module that go into the generated module,
// with its go.mod: package scheduler and the adapter for the release, and the bundled plugins that
// are compiled in.
func (s *Set) APIFiles(t Target) map[string][]byte {
	if s.api == nil {
		return nil
	}
	files := map[string][]byte{}
	for name, data := range s.apiFiles() {
		files[APIDir+"/"+name] = data
	}
	files[APIDir+"/go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n", APIModule, t.language(nil))
	return files
}

func (s *Set) apiFiles() map[string][]byte {
	files := map[string][]byte{}
	for name, data := range s.api.files {
		dir := path.Dir(name)
		switch {
		case dir == adapterDir || dir == apiDir:
			if len(AdapterFiles(adapterMinor(s.release), []string{path.Base(name)})) > 0 {
				files[name] = AdapterSource(data)
			}
		case strings.HasPrefix(name, builtinDir+"/"):
			plugin, _, _ := strings.Cut(strings.TrimPrefix(name, builtinDir+"/"), "/")
			if s.uses(builtinDir + "/" + plugin) {
				files[name] = data
			}
		case strings.HasPrefix(name, examplesDir+"/"):
			if s.uses(dir) {
				files[name] = data
			}
		case s.imported(dir):
			files[name] = data
		}
	}
	return files
}

// uses reports whether a plugin's package is in a directory of package scheduler's module, or
// below.
func (s *Set) uses(dir string) bool {
	return slices.ContainsFunc(s.plugins, func(p resolved) bool {
		return p.info.Package == APIModule+"/"+dir || strings.HasPrefix(p.info.Package, APIModule+"/"+dir+"/")
	})
}

// imported reports whether a plugin or the adapter imports another package of package scheduler's
// module.
func (s *Set) imported(dir string) bool {
	quoted := []byte(`"` + APIModule + "/" + dir + `"`)
	for _, m := range append([]*pluginModule{s.api}, s.modules...) {
		for name, data := range m.files {
			if path.Dir(name) != dir && strings.HasSuffix(name, ".go") && bytes.Contains(data, quoted) {
				return true
			}
		}
	}
	return false
}
