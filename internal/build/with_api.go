package build

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build/binding"
)

// Where things lie in the module of this project.
const (
	apiFolder     = "scheduler"
	adapterFolder = "scheduler/adapter"
	builtinFolder = "scheduler/plugins"
	// generatedAPI is where they lie in the generated module.
	generatedAPI = "pmk-sched"
)

// apiModule returns the sources of package scheduler, the adapter and the
// shipped plugins.
func (r *pluginReader) apiModule() (*pluginModule, error) {
	if r.set.api != nil {
		return r.set.api, nil
	}
	if r.sources == nil {
		return nil, &Error{Step: "read plugins", Cause: CauseInput, Message: "there are no sources of package scheduler to compile them against"}
	}
	return r.useAPI(r.sources, apiModule)
}

// useAPI reads the sources of package scheduler from the top of a module.
func (r *pluginReader) useAPI(sources fs.FS, place string) (*pluginModule, error) {
	m := &pluginModule{path: apiModule, place: place, folder: generatedAPI, platform: r.platform}
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

// readSources reads the Go files below the folder scheduler, without the extender: it is no part of any scheduler.
func readSources(sources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(sources, apiFolder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || name == extenderFolder):
			return fs.SkipDir
		case entry.IsDir() || !isSource(name):
			return nil
		}
		files[name], err = fs.ReadFile(sources, name)
		return err
	})
	return files, err
}

// builtins returns the names of the shipped plugins.
func builtins(api *pluginModule) []string {
	names := map[string]bool{}
	for name := range api.files {
		if rest, found := strings.CutPrefix(name, builtinFolder+"/"); found {
			plugin, file, below := strings.Cut(rest, "/")
			if below && !strings.Contains(file, "/") {
				names[plugin] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// apiFiles returns what of package scheduler's module goes into the generated
// module: of the adapter the files of the release, of the shipped plugins those
// that are compiled in.
func (s *pluginSet) apiFiles() map[string][]byte {
	files := map[string][]byte{}
	for name, data := range s.api.files {
		dir := path.Dir(name)
		switch {
		case dir == adapterFolder:
			if len(binding.Files(adapterMinor(s.release), []string{path.Base(name)})) > 0 {
				files[name] = binding.Source(data)
			}
		case strings.HasPrefix(name, builtinFolder+"/"):
			plugin, _, _ := strings.Cut(strings.TrimPrefix(name, builtinFolder+"/"), "/")
			if s.uses(builtinFolder + "/" + plugin) {
				files[name] = data
			}
		case dir == apiFolder || s.imported(dir):
			files[name] = data
		}
	}
	return files
}

// uses reports whether a plugin's package lies in a folder of package
// scheduler's module, or below.
func (s *pluginSet) uses(folder string) bool {
	return slices.ContainsFunc(s.plugins, func(p resolvedPlugin) bool {
		return p.info.Package == apiModule+"/"+folder || strings.HasPrefix(p.info.Package, apiModule+"/"+folder+"/")
	})
}

// imported reports whether a plugin or the adapter imports a further package of
// package scheduler's module.
func (s *pluginSet) imported(folder string) bool {
	quoted := []byte(`"` + apiModule + "/" + folder + `"`)
	for _, m := range append([]*pluginModule{s.api}, s.modules...) {
		for name, data := range m.files {
			if path.Dir(name) != folder && strings.HasSuffix(name, ".go") && bytes.Contains(data, quoted) {
				return true
			}
		}
	}
	return false
}
