package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// confine refuses unpacked sources that lead a build to files outside of the directory to: dir is
// the plugin's directory. [Archive] writes no such sources.
func confine(to, dir string) error {
	root, found := moduleRoot(dir)
	if inside, err := filepath.Rel(to, root); !found || err != nil || !filepath.IsLocal(inside) {
		return errors.New("the archive has no go.mod for its plugin")
	}
	m, err := readModule(root)
	if err != nil {
		return err
	}
	for _, r := range m.mod.Replace {
		path := filepath.FromSlash(r.New.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		inside, err := filepath.Rel(to, path)
		if r.New.Version == "" && (filepath.IsAbs(r.New.Path) || err != nil || !filepath.IsLocal(inside)) {
			return problem.Invalidf("name the directory of the plugin with -f pmk-sched.yaml",
				"its go.mod replaces %s with %q, outside of the archive", r.Old.Path, r.New.Path)
		}
	}
	return filepath.WalkDir(to, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return confineFile(name)
	})
}

// confineFile refuses a workspace, and a file that includes another file from elsewhere.
func confineFile(name string) error {
	if filepath.Base(name) == workspaceFile {
		return errors.New("the archive has a " + workspaceFile)
	}
	if !slices.Contains([]string{".s", ".S", ".h"}, filepath.Ext(name)) {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := string(data)
	included := plainInclude.FindAllStringSubmatch(text, -1)
	if slices.ContainsFunc(included, func(match []string) bool { return !filepath.IsLocal(match[1]) }) ||
		anyInclude.MatchString(plainInclude.ReplaceAllString(text, "")) {
		return fmt.Errorf("%q has an #include that may name a file outside of the archive", filepath.Base(name))
	}
	return nil
}

// plainInclude matches an include of Go's assembler as everyone writes it, and anyInclude all that
// it accepts (cmd/asm/internal/lex/input.go): with comments in between, and with escapes in the
// name, which is any file's path.
var (
	plainInclude = regexp.MustCompile(`(?m)^#include "([A-Za-z0-9_./-]+)"[ \t]*$`)
	anyInclude   = regexp.MustCompile(`#(?s:\s|/\*.*?\*/|//[^\n]*)*include`)
)
