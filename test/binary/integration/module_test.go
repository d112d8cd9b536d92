//go:build linux && releases

package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// tests is the directory of upstream's tests in the module of Kubernetes, and scheduler the file
// with the function that every scheduler starts with.
const (
	kubernetes = "k8s.io/kubernetes"
	tests      = kubernetes + "/test/integration/scheduler"
	scheduler  = "pkg/scheduler/scheduler.go"
)

// anchor is the text of that file after which the profiles and the registry are known.
const anchor = `	if err := registry.Merge(options.frameworkOutOfTreeRegistry); err != nil {
		return nil, err
	}
`

// started is what the plugin prints when a scheduler starts with it.
const started = "Noop started"

// adapted is the package of the generated module whose function Change changes them.
const adapted = "pmk-sched.io/build/adapted"

// adaptedSource adds the registered plugins to copies of the profiles, as the first ones at every
// extension point that they have.
const adaptedSource = `package adapted

import (
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func Change(registry runtime.Registry, profiles []config.KubeSchedulerProfile) ([]config.KubeSchedulerProfile, error) {
	var first []config.Plugin
	for _, o := range plugins() {
		first = append(first, config.Plugin{Name: o.Name})
		if err := registry.Register(o.Name, o.Factory); err != nil {
			return nil, err
		}
	}
	var all []config.KubeSchedulerProfile
	for i := range profiles {
		p := profiles[i].DeepCopy()
		if p.Plugins != nil {
			p.Plugins.MultiPoint.Enabled = append(first[:len(first):len(first)], p.Plugins.MultiPoint.Enabled...)
		}
		all = append(all, *p)
	}
	return all, nil
}
`

// appSource stands in for the package of the command, which imports the scheduler.
const appSource = `package app

import "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

type Option struct {
	Name    string
	Factory runtime.PluginFactory
}

func WithPlugin(name string, factory runtime.PluginFactory) Option { return Option{name, factory} }
`

// module is a module in which the tests of a release are compiled.
type module struct {
	dir, source string
	env         []string
	flags       []string
	overlay     string
	// tests are the variables that the tests get.
	tests []string
}

// newAdapted returns the module of a release with the plugin without effect in every scheduler.
func newAdapted(t *testing.T, release string) *module {
	t.Helper()
	dir := "noop"
	if parse(t, release).Rules().PreEnqueue {
		dir = "noop/preenqueue"
	}
	plugin, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := newModule(t, release, plugins.Plugin{Dir: plugin})
	m.adapt(t, adaptedSource)
	// The test server looks for its testdata below the path of its package, which -trimpath shortens
	// to the path in the module cache (cmd/kube-apiserver/app/testing/testserver.go, pkgPath).
	modules, _ := strings.CutSuffix(m.source, kubernetes+"@"+release)
	m.tests = []string{"TEST_SRCDIR=" + modules, "TEST_WORKSPACE=."}
	if !parse(t, release).Rules().Etcd34 {
		etcd := filepath.Dir(find(t, release, programs.Etcd)[programs.Etcd])
		m.tests = append(m.tests, "PATH="+etcd+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return m
}

func parse(t *testing.T, name string) versions.Release {
	t.Helper()
	release, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// newModule returns the module of a release with portable plugins.
func newModule(t *testing.T, name string, with ...plugins.Plugin) *module {
	t.Helper()
	release := parse(t, name)
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	environment := build.Environment{CacheDir: cache, Env: os.Environ()}
	result, err := build.Run(t.Context(), build.Options{
		Release: release, Plugins: with, Sources: pmksched.Sources, Keep: true, Environment: environment,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(result.Dir); err != nil {
			t.Error(err)
		}
	})
	// The flags equal the flags of the build, so that the tests use its compiled packages.
	m := &module{dir: result.Dir, flags: []string{"-trimpath", "-tags", strings.Join(release.Rules().BuildTags, ",")},
		env: append(os.Environ(), "GOTOOLCHAIN=go"+result.Info.Go, "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")}
	if m.source, err = build.SourceDir(t.Context(), release, environment); err != nil {
		t.Fatal(err)
	}
	// A build whose program is in the cache adds no requirements to go.mod. Without them the tests are
	// compiled with other versions of the modules of Kubernetes, which compiles all packages again.
	m.run(t, "list", "-deps", "./...")
	return m
}

// run runs the go command in the module.
func (m *module) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = m.dir, m.env
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, failed.String())
	}
	return strings.TrimSpace(string(out))
}

// find compiles programs of a release, or finds them in the cache, and returns their paths by name.
func find(t *testing.T, release string, names ...string) map[string]string {
	t.Helper()
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	finder := programs.Finder{Environment: build.Environment{CacheDir: cache, Env: os.Environ()}, From: programs.Build}
	found, err := finder.Find(t.Context(), programs.Request{Release: parse(t, release), Names: names})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for name, p := range found {
		paths[name] = p.Path
	}
	return paths
}

// local makes the module use a copy of a module of the module cache, and returns its directory:
// from Go 1.25 on an overlay must not replace files of the cache (cmd/go/internal/work/init.go).
func (m *module) local(t *testing.T, module, source string) string {
	t.Helper()
	dir := filepath.Join(m.dir, "local", module)
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	m.run(t, "mod", "edit", "-replace="+module+"="+dir)
	return dir
}

// adapt writes the package that changes the profiles and the registry, and an overlay that calls it
// when a scheduler starts.
func (m *module) adapt(t *testing.T, source string) {
	t.Helper()
	registrations := m.read(t, filepath.Join(m.dir, build.SchedulerDir, "plugins.go"))
	registrations = strings.Replace(registrations, "package main", "package adapted", 1)
	registrations = strings.Replace(registrations, kubernetes+"/cmd/kube-scheduler/app", adapted+"/app", 1)
	m.write(t, "adapted/plugins.go", registrations)
	m.write(t, "adapted/adapted.go", source)
	m.write(t, "adapted/app/app.go", appSource)
	original := filepath.Join(m.local(t, kubernetes, m.source), scheduler)
	text := m.read(t, original)
	if strings.Count(text, anchor) != 1 {
		t.Fatalf("%s has not once:\n%s", original, anchor)
	}
	text = strings.Replace(text, anchor, anchor+`	changed, failed := adapted.Change(registry, options.profiles)
	if failed != nil {
		return nil, failed
	}
	options.profiles = changed
`, 1)
	text = strings.Replace(text, "\nimport (\n", "\nimport (\n\t\""+adapted+"\"\n", 1)
	replaced := m.write(t, "overlay/scheduler.go", text)
	table, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	m.overlay = m.write(t, "overlay/overlay.json", string(table))
}

func (m *module) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write writes a file of the module and returns its path.
func (m *module) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// packages returns the packages with tests, relative to tests.
func (m *module) packages(t *testing.T) (all []string) {
	t.Helper()
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}`
	for name := range strings.FieldsSeq(m.run(t, "list", "-f", format, tests+"/...")) {
		all = append(all, strings.Trim(strings.TrimPrefix(name, tests), "/"))
	}
	return all
}

// compile compiles the tests of a package, with the plugin or without.
func (m *module) compile(t *testing.T, root, name string, with bool) string {
	t.Helper()
	side := "without"
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w"}, m.flags...)
	if with {
		side = "with"
		args = append(args, "-overlay", m.overlay)
	}
	binary := filepath.Join(m.dir, "tests", side, strings.ReplaceAll(path.Join(path.Base(root), name), "/", "-"))
	m.run(t, append(args, "-o", binary, path.Join(root, name))...)
	return binary
}
