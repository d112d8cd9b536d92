// Package scaffold creates a new plugin's module: code, tests, README, pmk-sched.yaml, a scenario
// and a CI workflow.
package scaffold

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

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

//go:embed templates/plugin
var pluginTemplates embed.FS

// Plugin kinds, which are template directories.
const (
	// Portable plugins fit every release.
	Portable = "portable"
	// Native plugins use one release's framework.
	Native = "native"
	// Extender is a portable plugin with a program that serves it as a scheduler extender.
	Extender = "extender"
)

// common is the directory of the templates for portable and native plugins.
const common = "common"

// Request is the plugin to create.
type Request struct {
	Kind string
	// Name as the user writes it, such as MyPlugin or my-plugin.
	Name string
	// Dir is the directory to create. Defaults to the name in lower case. Module is the module's path.
	// Defaults to example.com/NAME.
	Dir, Module string
	// Branch is the release for a native plugin, and for the plugin's pmk-sched.yaml. If it is empty
	// or "auto", the newest release is used.
	Branch string
}

// Result is the created module.
type Result struct {
	Dir, Package string
	// Release is a native plugin's release, and the newest one that a portable plugin is for.
	Release versions.Release
}

type newPlugin struct {
	// Name is the name in the configuration, Type the name in the code. Package, Scheduler and
	// Label are derived from it.
	Name, Type, Package, Scheduler, Label string
	Module, Branch, Minor, Go             string
	// Releases are the releases that the plugin is tested with, the first one on every change.
	Releases []string
	// The remaining fields describe the framework in a native plugin's release: Pkg is the package of
	// Handle and Plugin, Status the package of Status.
	Context, New, Newest         bool
	Pkg, State, NodeInfo, Status string
}

// Plugin creates the module, or nothing.
func Plugin(ctx context.Context, s *session.Session, r Request) (_ *Result, err error) {
	if r.Branch, err = pack.ChooseBranch(ctx, s, r.Branch); err != nil {
		return nil, err
	}
	p, release, err := describe(r)
	if err != nil {
		return nil, err
	}
	dir := cmp.Or(r.Dir, p.Package)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 ||
		err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Invalidf("choose another directory with --dir",
			"create %s: it exists and is not an empty directory", dir)
	}
	p.Releases = testedReleases(r.Kind, release)
	o := build.Environment{CacheDir: s.CacheDir, Env: s.Environ, Log: s.Log}
	files := map[string][]byte{}
	switch r.Kind {
	case Native:
		err = s.Step("read Kubernetes "+release.String(),
			func() error { return nativeModule(ctx, files, &p, release, o) })
	case Extender:
		err = portableModule(files, &p, "scheduler", "scheduler/plugintest", "scheduler/extender")
	default:
		err = portableModule(files, &p, "scheduler", "scheduler/plugintest")
	}
	if err != nil {
		return nil, err
	}
	if r.Kind == Extender {
		err = fillExtender(files, p)
	} else {
		err = errors.Join(fillTemplates(files, r.Kind, p), fillTemplates(files, common, p))
	}
	if err != nil {
		return nil, err
	}
	if err := writeModule(ctx, dir, files, o, s); err != nil {
		return nil, err
	}
	return &Result{Dir: dir, Package: p.Package, Release: release}, nil
}

// testedReleases returns a native plugin's release, and for a portable one its release and some of
// all that are supported.
func testedReleases(kind string, release versions.Release) []string {
	list := []string{release.String()}
	if kind == Native {
		return list
	}
	for _, other := range versions.Releases() {
		if slices.Contains([]int{20, 24, 29, 33}, other.Minor) && other.Minor != release.Minor {
			list = append(list, other.String())
		}
	}
	return list
}

var pluginName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*$`)

func describe(r Request) (newPlugin, versions.Release, error) {
	if !pluginName.MatchString(r.Name) || token.IsKeyword(strings.ToLower(r.Name)) {
		return newPlugin{}, versions.Release{}, problem.Invalidf("use a name such as MyPlugin or my-plugin",
			"invalid plugin name %q: must consist of letters, digits and -", r.Name)
	}
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(r.Name, func(r rune) bool { return r == '-' || r == '_' }) {
		name.WriteString(string(unicode.ToUpper(rune(word[0]))) + word[1:])
	}
	p := newPlugin{Name: name.String(), Type: name.String(), Package: strings.ToLower(name.String()), Branch: "auto"}
	if p.Type == "New" || p.Type == "Name" || p.Type == "Arguments" || p.Type == "Rules" {
		p.Type += "Plugin"
	}
	p.Scheduler = p.Package + "-scheduler"
	p.Label = p.Package + "/exclude"
	p.Module = cmp.Or(r.Module, "example.com/"+p.Package)
	if err := module.CheckImportPath(p.Module); err != nil {
		return newPlugin{}, versions.Release{}, problem.Invalidf("", "invalid --module: %w", err)
	}
	release := versions.Releases()[0]
	if r.Branch != "" && r.Branch != "auto" {
		var err error
		if release, err = versions.Parse(r.Branch); err != nil {
			return newPlugin{}, release, err
		}
		p.Branch = release.String()
	}
	rules, err := versions.Select(release)
	if err != nil {
		return newPlugin{}, release, err
	}
	if slices.Contains(rules.Plugins, p.Name) {
		return newPlugin{}, release, problem.Invalidf("", "%s has an in-tree plugin %s", release, p.Name)
	}
	return p, release, nil
}

// nativeModule adds go.mod and go.sum for a release, and the names that its framework uses.
func nativeModule(
	ctx context.Context, files map[string][]byte, p *newPlugin, release versions.Release, o build.Environment,
) error {
	made, goVersion, err := build.ReleaseModule(ctx, release, p.Module, o)
	if err != nil {
		return err
	}
	for name, text := range made {
		files[name] = text
	}
	p.Branch, p.Minor, p.Go = release.String(), release.MinorString(), goVersion
	rules := release.Rules()
	p.Context, p.New, p.Newest = rules.PluginContext, rules.StagedTypes, rules.StagedInterfaces
	p.Pkg, p.State, p.NodeInfo, p.Status = "framework", "*framework.CycleState", "*framework.NodeInfo", "framework"
	if p.New {
		p.State, p.NodeInfo, p.Status = "fwk.CycleState", "fwk.NodeInfo", "fwk"
	}
	if p.Newest {
		p.Pkg = "fwk"
	}
	return nil
}

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
		switch {
		case name == "workflow.yaml":
			name = ".github/workflows/test.yaml"
		case strings.HasPrefix(name, "plugin"):
			name = p.Package + strings.TrimPrefix(name, "plugin")
		}
		files[name] = source
	}
	return nil
}

// writeModule writes the files and has go complete go.mod. Without a network that is left to the
// user.
func writeModule(
	ctx context.Context, dir string, files map[string][]byte, o build.Environment, s *session.Session,
) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create %s: %w", dir, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("create %s: %w", dir, err)
		}
	}
	err := s.Step("complete "+filepath.Join(dir, "go.mod"), func() error { return build.CompleteModule(ctx, dir, o) })
	if err != nil && ctx.Err() == nil {
		s.Warn(fmt.Sprintf("%s is created, but its go.mod is incomplete: run `go mod tidy` there (%s)", dir, err))
		return nil
	}
	return err
}
