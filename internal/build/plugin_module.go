package build

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

// pluginModule is a module that plugins come from, with the files of it that can
// take part in a build. It becomes a folder of the generated module.
type pluginModule struct {
	path, version string
	// place is what a person knows the module's top folder by: the folder as it
	// was given, or module@version.
	place string
	// folder is where it lies in the generated module.
	folder   string
	files    map[string][]byte
	mod      *modfile.File
	sums     string
	platform platformOf
}

// names returns the names of the files, sorted.
func (m *pluginModule) names() []string { return slices.Sorted(maps.Keys(m.files)) }

// shown returns a file or folder of the module by the name that a person knows.
func (m *pluginModule) shown(name string) string {
	switch {
	case name == "" || name == ".":
		return m.place
	case m.place == ".":
		return name
	}
	return strings.TrimSuffix(m.place, "/") + "/" + name
}

// folderOf returns the folder of a package in the module.
func (m *pluginModule) folderOf(pkg string) (string, bool) {
	if pkg == m.path {
		return ".", true
	}
	return strings.CutPrefix(pkg, m.path+"/")
}

// maxPackagesShown bounds how many packages an error lists.
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

// hasName is how most plugins declare their constant Name.
var hasName = regexp.MustCompile(`(?m)^\s*(const )?Name\s+(string\s+)?= `)

// looksLikePlugin reports whether a folder has both of a plugin's declarations.
func (m *pluginModule) looksLikePlugin(dir string) bool {
	named, made := false, false
	for name, data := range m.files {
		if path.Dir(name) == dir && strings.HasSuffix(name, ".go") {
			named = named || hasName.Match(data)
			made = made || bytes.Contains(data, []byte("\nfunc New("))
		}
	}
	return named && made
}

// maxModuleBytes is how much of a module is read: sources are far smaller, and a
// folder that holds more is not what was meant.
const maxModuleBytes = 128 << 20

// moduleReader collects the files of a module that the go command may read:
// sources outside of vendor, testdata, hidden folders and modules of their own,
// without tests, and beside and below a package that embeds files everything.
type moduleReader struct {
	fs    fs.FS
	top   string
	files map[string][]byte
	size  int64
}

// readFiles reads the files of a module from a folder.
func readFiles(dir string) (map[string][]byte, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	r := &moduleReader{fs: os.DirFS(real), top: real, files: map[string][]byte{}}
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
		if nested == nil || base == "vendor" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return fs.SkipDir
		}
		return nil
	}
	if !isSource(name) {
		return nil
	}
	return r.read(name, entry)
}

// isSource reports whether the go command may compile a file.
func isSource(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || strings.HasSuffix(base, "_test.go") {
		return false
	}
	return slices.Contains([]string{".go", ".s", ".S", ".h", ".c", ".syso"}, path.Ext(base))
}

// read reads one file. A symbolic link counts as what it points to, which has to
// be in the module: what is elsewhere is not part of it.
func (r *moduleReader) read(name string, entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(filepath.Join(r.top, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if inside, err := filepath.Rel(r.top, to); err != nil || !filepath.IsLocal(inside) {
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
		return fmt.Errorf("it holds more than %d MB of sources", maxModuleBytes>>20)
	}
	r.files[name] = data
	return nil
}

// embedded adds what packages with a //go:embed line may embed.
func (r *moduleReader) embedded() error {
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if !strings.HasSuffix(name, ".go") || !bytes.Contains(r.files[name], []byte("\n//go:embed ")) {
			continue
		}
		err := fs.WalkDir(r.fs, path.Dir(name), func(found string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (path.Base(found) == ".git" || path.Base(found) == "vendor"):
				return fs.SkipDir
			case entry.IsDir() || r.files[found] != nil || strings.HasSuffix(found, "_test.go") || path.Base(found) == "go.mod" || path.Base(found) == "go.sum":
				return nil
			}
			return r.read(found, entry)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readModule reads go.mod, go.sum and the files of a module's top folder.
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

// moduleTop finds the folder with the go.mod that a folder belongs to.
func moduleTop(dir string) (top string, found bool) {
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
