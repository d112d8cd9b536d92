package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// pluginModule is a module with plugins, and its files that can be compiled. It becomes a directory
// of the generated module.
type pluginModule struct {
	path string
	// shownAs is the module's root as the user knows it: the given directory, or module@version.
	shownAs string
	// dir is its directory in the generated module.
	dir      string
	files    map[string][]byte
	mod      *modfile.File
	sums     string
	platform Platform
	// replacements are the directories that its go.mod replaces modules with.
	replacements []*pluginModule
}

func (m *pluginModule) names() []string { return slices.Sorted(maps.Keys(m.files)) }

// sources returns the names of a package's Go files, without its tests.
func (m *pluginModule) sources(dir string) []string {
	return slices.DeleteFunc(m.names(), func(name string) bool {
		return path.Dir(name) != path.Clean(dir) || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go")
	})
}

// shown returns a file or directory of the module by the name that the user knows.
func (m *pluginModule) shown(name string) string {
	switch {
	case name == "" || name == ".":
		return m.shownAs
	case m.shownAs == ".":
		return name
	}
	return strings.TrimSuffix(m.shownAs, "/") + "/" + name
}

// dirOf returns the directory of a package in the module.
func (m *pluginModule) dirOf(pkg string) (string, bool) {
	if pkg == m.path {
		return ".", true
	}
	return strings.CutPrefix(pkg, m.path+"/")
}

const maxPackagesShown = 12

// packagesHint lists the packages of the module that look like plugins.
func (m *pluginModule) packagesHint() string {
	var found []string
	for _, name := range m.names() {
		dir := path.Dir(name)
		if !slices.Contains(found, dir) && m.looksLikePlugin(dir) {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		return ""
	}
	more := ""
	if len(found) > maxPackagesShown {
		more = fmt.Sprintf(" and %d more", len(found)-maxPackagesShown)
		found = found[:maxPackagesShown]
	}
	return "its packages that look like plugins: " + strings.Join(found, ", ") + more
}

// declaresName matches the declaration of the constant Name in most plugins.
var declaresName = regexp.MustCompile(`(?m)^\s*(const )?Name\s+(string\s+)?= `)

func (m *pluginModule) looksLikePlugin(dir string) bool {
	hasName, hasNew := false, false
	for name, data := range m.files {
		if path.Dir(name) == dir && strings.HasSuffix(name, ".go") {
			hasName = hasName || declaresName.Match(data)
			hasNew = hasNew || bytes.Contains(data, []byte("\nfunc New("))
		}
	}
	return hasName && hasNew
}

// maxModuleBytes limits the files of a module that are read. Sources and embedded files are far
// smaller; a module with more is not a plugin.
const maxModuleBytes = 128 << 20

// moduleReader collects the files in a module that the go command may compile or embed: sources
// without tests, outside vendor, testdata, hidden directories and nested modules, and the files
// that match these sources' go:embed patterns.
type moduleReader struct {
	fs    fs.FS
	root  string
	files map[string][]byte
	size  int64
}

func readFiles(dir string) (map[string][]byte, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	r := &moduleReader{fs: os.DirFS(real), root: real, files: map[string][]byte{}}
	if err := fs.WalkDir(r.fs, ".", r.visit); err != nil {
		return nil, err
	}
	return r.files, r.embedded()
}

func (r *moduleReader) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		if name == "." {
			return nil
		}
		_, nested := fs.Stat(r.fs, path.Join(name, "go.mod"))
		base := path.Base(name)
		if nested == nil || base == "vendor" || base == "testdata" || strings.HasPrefix(base, ".") ||
			strings.HasPrefix(base, "_") {
			return fs.SkipDir
		}
		return nil
	}
	if !IsSource(name) {
		return nil
	}
	return r.read(name, entry)
}

// IsSource reports whether the go command may compile a file.
func IsSource(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || strings.HasSuffix(base, "_test.go") {
		return false
	}
	return slices.Contains([]string{".go", ".s", ".S", ".h", ".c", ".syso"}, path.Ext(base))
}

// read reads one file. A symbolic link is followed, but only to a file of the module.
func (r *moduleReader) read(name string, entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(filepath.Join(r.root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if inside, err := filepath.Rel(r.root, to); err != nil || !filepath.IsLocal(inside) {
			return fmt.Errorf("%s is a symbolic link to a file outside of the module", name)
		}
		if info, err := os.Stat(to); err != nil || !info.Mode().IsRegular() {
			return err
		}
	} else if !entry.Type().IsRegular() {
		return nil
	}
	data, err := fs.ReadFile(r.fs, name)
	if err != nil {
		return err
	}
	if r.size += int64(len(data)); r.size > maxModuleBytes {
		return fmt.Errorf("it has more than %d MB of sources and embedded files", maxModuleBytes>>20)
	}
	r.files[name] = data
	return nil
}

// readModule reads go.mod, go.sum and the files of a module from its root.
func readModule(dir string) (*pluginModule, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		// A newer Go may know more directives.
		if file, err = modfile.ParseLax("go.mod", data, nil); err != nil {
			return nil, err
		}
	}
	if file.Module == nil {
		return nil, errors.New("its go.mod has no module line")
	}
	m := &pluginModule{path: file.Module.Mod.Path, mod: file}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m.sums = string(sums)
	m.files, err = readFiles(dir)
	return m, err
}

// moduleRoot finds the root of the module that contains a directory.
func moduleRoot(dir string) (root string, found bool) {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && !info.IsDir() {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
