package scaffold

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	pmksched "github.com/pmk-sched/pmk-sched"
)

// ownModule is the module of pmk-sched, whose package scheduler the plugins use.
const ownModule = "github.com/pmk-sched/pmk-sched"

// portableModule adds a copy of pmk-sched packages as a separate module, and go.mod and go.sum with
// the versions that pmk-sched itself is built with.
func portableModule(files map[string][]byte, p *newPlugin, dirs ...string) error {
	own, err := modfile.Parse("go.mod", pmksched.GoMod, nil)
	if err != nil {
		return fmt.Errorf("read the versions of the dependencies of package scheduler: %w", err)
	}
	var sources bytes.Buffer
	for _, dir := range dirs {
		names, err := fs.Glob(pmksched.Sources, dir+"/*.go")
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(pmksched.Sources, name)
			if err != nil {
				return fmt.Errorf("copy package %s: %w", dir, err)
			}
			files["pmk-sched/"+name] = text
			sources.Write(text)
		}
	}
	var requires strings.Builder
	for _, r := range own.Require {
		if strings.Contains(sources.String(), `"`+r.Mod.Path+`"`) ||
			strings.Contains(sources.String(), `"`+r.Mod.Path+"/") {
			fmt.Fprintf(&requires, "\t%s %s\n", r.Mod.Path, selectedVersion(own, r.Mod))
		}
	}
	p.Go = own.Go.Version
	head := fmt.Sprintf("\n\ngo %s\n", own.Go.Version)
	files["pmk-sched/go.mod"] = []byte("module " + ownModule + head + "\nrequire (\n" + requires.String() + ")\n")
	files["go.mod"] = []byte("module " + p.Module + head + "\nrequire (\n\t" + ownModule + " v0.0.0\n" +
		requires.String() + ")\n\nreplace " + ownModule + " => ./pmk-sched\n")
	files["go.sum"] = pmksched.GoSum
	return nil
}

// selectedVersion is the version of a module after replacements.
func selectedVersion(own *modfile.File, required module.Version) string {
	for _, r := range own.Replace {
		if r.Old.Path == required.Path && r.New.Path == required.Path {
			return r.New.Version
		}
	}
	return required.Version
}

// fillExtender adds a portable plugin in its own directory, and the program that serves it.
func fillExtender(files map[string][]byte, p newPlugin) error {
	plugin := map[string][]byte{}
	if err := fillTemplates(plugin, Portable, p); err != nil {
		return err
	}
	for name, text := range plugin {
		if strings.HasSuffix(name, ".go") {
			files[p.Package+"/"+name] = text
		}
	}
	return fillTemplates(files, Extender, p)
}
