package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

//go:embed templates/plugin
var pluginTemplates embed.FS

// newPlugin is what the templates of a plugin are filled with.
type newPlugin struct {
	// Name stands in the configuration, Type in the code, and Package, Scheduler
	// and Label are made of it.
	Name, Type, Package, Scheduler, Label string
	Module, Branch, Minor, Go             string
	// The rest is how the framework of a native plugin's release is written: Pkg
	// has Handle and Plugin, Status the package of Status.
	Context, New, Newest         bool
	Pkg, State, NodeInfo, Status string
}

func pluginNewCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "new",
		Usage:     "begin a plugin: a module with code, test, README and pmk-sched.yaml, which builds at once",
		ArgsUsage: "NAME",
		Description: "A portable plugin is written once and compiled for any release. A native one is written against the framework\n" +
			"of one release. Flags go before the name.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "portable", Usage: "a plugin for every release (the default)"},
			&cli.BoolFlag{Name: "native", Usage: "a plugin for the framework of one release"},
			&cli.BoolFlag{Name: "extender", Usage: "a portable plugin with a program that serves it as a scheduler extender"},
			&cli.StringFlag{Name: "dir", Usage: "`DIR` to make", DefaultText: "./NAME"},
			&cli.StringFlag{Name: "module", Usage: "`PATH` of the Go module", DefaultText: "example.com/NAME"},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that a native plugin is for, and that pmk-sched.yaml names", DefaultText: "the newest that is known; auto in a portable plugin's file"},
		},
		Action: func(c *cli.Context) error {
			dir, p, err := makePlugin(c, u)
			if err == nil {
				next := "pmk-sched build -f pmk-sched.yaml"
				if kindOfPlugin(c) == kindExtender {
					next = "pmk-sched build --extender --with ./" + p.Package
				}
				u.say("%s is ready: `cd %s && go test ./...`, then `%s`", dir, dir, next)
			}
			return err
		},
	}
}

// makePlugin writes the folder, or nothing.
func makePlugin(c *cli.Context, u *ui) (dir string, p newPlugin, err error) {
	kind := kindOfPlugin(c)
	if c.Bool("portable") && c.Bool("native") || c.Bool("native") && c.Bool("extender") {
		return "", p, usagef("", "give one of --portable, --native and --extender, not both")
	}
	p, release, err := describeNew(c)
	if err != nil {
		return "", p, err
	}
	dir = cmp.Or(c.String("dir"), p.Package)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", p, usagef("name another with --dir", "make %s: it is there already, and not an empty folder", dir)
	}
	cache, err := cacheDir(c)
	if err != nil {
		return "", p, err
	}
	o := build.SourceOptions{CacheDir: cache, Env: os.Environ(), Log: u.log}
	files := map[string][]byte{}
	switch kind {
	case kindNative:
		err = during(u, "read Kubernetes "+release.String(), func() error { return nativeModule(c.Context, files, &p, release, o) })
	case kindExtender:
		err = portableModule(files, &p, "scheduler", "scheduler/extender")
	default:
		err = portableModule(files, &p, "scheduler")
	}
	if err != nil {
		return "", p, err
	}
	if kind == kindExtender {
		err = fillExtender(files, p)
	} else {
		err = fillTemplates(files, kind, p)
	}
	if err != nil {
		return "", p, err
	}
	return dir, p, writePlugin(c.Context, u, dir, files, o)
}

// Kinds of what is begun, which are folders of templates.
const (
	kindPortable = "portable"
	kindNative   = "native"
	kindExtender = "extender"
)

func kindOfPlugin(c *cli.Context) string {
	switch {
	case c.Bool("native"):
		return kindNative
	case c.Bool("extender"):
		return kindExtender
	}
	return kindPortable
}

var pluginName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*$`)

// describeNew derives all names from the one that was given.
func describeNew(c *cli.Context) (newPlugin, versions.Release, error) {
	given := c.Args().First()
	if !pluginName.MatchString(given) || token.IsKeyword(strings.ToLower(given)) {
		return newPlugin{}, versions.Release{}, usagef("such as MyPlugin or my-plugin", "%q is not a name for a plugin: it needs letters, digits and -", given)
	}
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(given, func(r rune) bool { return r == '-' || r == '_' }) {
		name.WriteString(string(unicode.ToUpper(rune(word[0]))) + word[1:])
	}
	p := newPlugin{Name: name.String(), Type: name.String(), Package: strings.ToLower(name.String()), Branch: branchAuto}
	if p.Type == "New" || p.Type == "Name" || p.Type == "Arguments" || p.Type == "Rules" {
		p.Type += "Plugin"
	}
	p.Scheduler = p.Package + "-scheduler"
	p.Label = p.Package + "/exclude"
	p.Module = cmp.Or(c.String("module"), "example.com/"+p.Package)
	if err := module.CheckImportPath(p.Module); err != nil {
		return newPlugin{}, versions.Release{}, usagef("", "--module: %s", err)
	}
	release := versions.Releases()[0]
	if branch := c.String("branch"); branch != "" && branch != branchAuto {
		var err error
		if release, err = versions.Parse(branch); err != nil {
			return newPlugin{}, release, err
		}
		p.Branch = release.String()
	}
	rules, _, err := versions.Select(release)
	if err != nil {
		return newPlugin{}, release, err
	}
	if slices.Contains(rules.Plugins, p.Name) {
		return newPlugin{}, release, usagef("", "%s has a plugin %s of its own", release, p.Name)
	}
	return p, release, nil
}

// nativeModule adds go.mod and go.sum of a release, and how its framework is written.
func nativeModule(ctx context.Context, files map[string][]byte, p *newPlugin, release versions.Release, o build.SourceOptions) error {
	made, goVersion, err := build.ReleaseModule(ctx, release, p.Module, o)
	if err != nil {
		return err
	}
	for name, text := range made {
		files[name] = text
	}
	p.Branch, p.Minor, p.Go = release.String(), release.MinorString(), goVersion
	p.Context, p.New, p.Newest = release.Minor >= 29, release.Minor >= 34, release.Minor >= 35
	p.Pkg, p.State, p.NodeInfo, p.Status = "framework", "*framework.CycleState", "*framework.NodeInfo", "framework"
	if p.New {
		p.State, p.NodeInfo, p.Status = "fwk.CycleState", "fwk.NodeInfo", "fwk"
	}
	if p.Newest {
		p.Pkg = "fwk"
	}
	return nil
}

// fillTemplates adds what differs with every plugin.
func fillTemplates(files map[string][]byte, kind string, p newPlugin) error {
	templates, err := template.ParseFS(pluginTemplates, "templates/plugin/"+kind+"/*.tmpl")
	if err != nil {
		return fmt.Errorf("read the templates of plugins: %w", err)
	}
	for _, t := range templates.Templates() {
		var text bytes.Buffer
		if err := t.Execute(&text, p); err != nil {
			return fmt.Errorf("write %s: %w", t.Name(), err)
		}
		name, source := strings.TrimSuffix(t.Name(), ".tmpl"), text.Bytes()
		if strings.HasSuffix(name, ".go") {
			if source, err = format.Source(source); err != nil {
				return fmt.Errorf("write %s: %w", t.Name(), err)
			}
		}
		if strings.HasPrefix(name, "plugin") {
			name = p.Package + strings.TrimPrefix(name, "plugin")
		}
		files[name] = source
	}
	return nil
}

// writePlugin writes the folder and has go complete its go.mod; without a network
// that is left to the person.
func writePlugin(ctx context.Context, u *ui, dir string, files map[string][]byte, o build.SourceOptions) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("make %s: %w", dir, err)
		}
	}
	err := during(u, "complete "+filepath.Join(dir, "go.mod"), func() error { return build.CompleteModule(ctx, dir, o) })
	if err != nil && ctx.Err() == nil {
		u.warn(fmt.Sprintf("%s is made, but its go.mod is not complete: run `go mod tidy` there (%s)", dir, err))
		return nil
	}
	return err
}
