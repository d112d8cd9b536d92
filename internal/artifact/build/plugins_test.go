package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// framework serves the modules that a native plugin needs, and returns the files of the fake
// Kubernetes for it.
func framework(t *testing.T, p *proxy) map[string]string {
	t.Helper()
	p.add(t, "k8s.io/apimachinery", "v0.24.3", map[string]string{
		"go.mod": "module k8s.io/apimachinery\n", "pkg/runtime/runtime.go": "package runtime\n\ntype Object interface{}\n",
	})
	p.add(t, "example.com/third", "v1.2.0", map[string]string{
		"go.mod": "module example.com/third\n", "third.go": "package third\n\nconst Name = \"third v1.2.0\"\n",
	})
	return map[string]string{
		"k8s.io/kubernetes/pkg/scheduler/framework/framework.go": "package framework\n\ntype (\n\tHandle interface{}\n" +
			"\tPlugin interface{}\n)\n",
	}
}

// native is a module with a native plugin in its directory pkg, whose go.mod is newer
// than the release in every way.
func native() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/native\n\ngo 1.25.3\n\ntoolchain go1.25.9\n\nrequire (\n\texample.com/third v1.2.0\n" +
			"\tk8s.io/apimachinery v0.24.3\n\tk8s.io/kubernetes v1.24.9\n)\n\nreplace example.com/third => ../nowhere\n",
		"pkg/native.go": `package pkg

import (
	"example.com/third"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const Name = "Native"

var Third = third.Name

func New(runtime.Object, framework.Handle) (framework.Plugin, error) { return nil, nil }
`,
	}
}

// pluginDirs writes the directories of plugins.txtar and returns where they are.
func pluginDirs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range readArchive(t, "../plugins/testdata/plugins.txtar").Files {
		write(t, filepath.Join(dir, filepath.FromSlash(file.Name)), string(file.Data))
	}
	return dir
}

// apiSources returns the sources of a fake package scheduler.
func apiSources(t *testing.T) fs.FS {
	t.Helper()
	sources := fstest.MapFS{}
	for _, file := range readArchive(t, "../plugins/testdata/api.txtar").Files {
		sources[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return sources
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}

func TestPluginsAreCompiledIn(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, framework(t, p))
	p.add(t, "example.com/native", "v1.5.0", native())
	portable := filepath.Join(pluginDirs(t), "portable")
	o := p.options(t)
	o.Sources, o.Keep = apiSources(t), true
	o.Plugins = []plugins.Plugin{{Module: "example.com/native", Version: "v1.5.0", Package: "example.com/native/pkg"},
		{Dir: portable}, {Builtin: "blockall", Name: "Gate"}}

	first := mustRun(t, o)

	if diff := cmp.Diff([]string{"Native native", "ToyAware portable", "Gate portable"},
		described(first.Info.Plugins)); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if got := output(t, first.Binaries[0].Path); !strings.Contains(got, "third v1.1.0") {
		t.Errorf("a plugin moved a module that the release pins: the binary says %q", got)
	}
	warnings := strings.Join(first.Info.Warnings, "\n")
	for _, want := range []string{"requires Kubernetes v1.24.9", "example.com/third v1.2.0 (not v1.1.0)"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings %q do not say %q", warnings, want)
		}
	}
	source, err := os.ReadFile(filepath.Join(first.Dir, filepath.FromSlash(pluginsFile)))
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/golden/plugins.go.txt", source)
	for _, name := range []string{"pmk-sched/scheduler/adapter/late_from25.go",
		"pmk-sched/scheduler/adapter/late_from30.go"} {
		if _, err := os.Stat(filepath.Join(first.Dir, name)); err == nil {
			t.Errorf("%s is in the generated module of another release", name)
		}
	}

	t.Run("second", func(t *testing.T) {
		again := o
		again.Env, again.Keep = []string{}, false
		slices.Reverse(again.Plugins)
		write(t, filepath.Join(portable, "README.md"), "no source")
		second := mustRun(t, again)
		if !second.Cached || second.Info.Inputs != first.Info.Inputs {
			t.Error("the same plugins in another order were compiled again")
		}
		write(t, filepath.Join(portable, "more.go"), "package portable\n")
		if changed := mustRun(t, withEnv(again, o.Env)); changed.Cached || changed.Info.Inputs == first.Info.Inputs {
			t.Error("a changed source was not compiled")
		}
	})
}

func withEnv(o Options, env []string) Options { o.Env = env; return o }

func described(infos []plugins.Info) []string {
	var all []string
	for _, p := range infos {
		all = append(all, p.Name+" "+p.Kind)
	}
	return all
}

func TestCompileErrorOfAPluginHasItsFileNames(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, framework(t, p))
	files := native()
	files["pkg/native.go"] += "\nvar wrong int = \"text\"\n"
	files["go.mod"] = strings.ReplaceAll(files["go.mod"], "replace", "// replace")
	dir := t.TempDir()
	writeFiles(t, dir, files)
	o := p.options(t)
	o.Plugins = []plugins.Plugin{{Dir: filepath.Join(dir, "pkg")}}

	failed := mustFail(t, o)

	if failed.Cause != CauseCompile || !strings.Contains(failed.Output, filepath.Join(dir, "pkg/native.go")+":15:") ||
		strings.Contains(failed.Output, "plugins/0") {
		t.Errorf("cause %s, output:\n%s", failed.Cause, failed.Output)
	}
	if !strings.Contains(failed.Message, "a plugin does not compile against v1.24.3") ||
		!strings.Contains(failed.Hint(), "requires Kubernetes v1.24.9") {
		t.Errorf("message %q, hint %q", failed.Message, failed.Hint())
	}
}

func TestPluginWithoutARequirementIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, framework(t, p))
	p.add(t, "example.com/loose", "v1.0.0",
		map[string]string{"go.mod": "module example.com/loose\n", "loose.go": "package loose\n"})
	files := native()
	files["pkg/native.go"] = strings.Replace(files["pkg/native.go"], "\"example.com/third\"",
		"\"example.com/third\"\n\t_ \"example.com/loose\"", 1)
	p.add(t, "example.com/native", "v1.5.0", files)
	o := p.options(t)
	o.Plugins = []plugins.Plugin{{Module: "example.com/native", Version: "v1.5.0", Package: "example.com/native/pkg"}}

	err := mustRefuse(t, o)

	if hints := problem.Hints(err); !strings.Contains(err.Error(), "example.com/loose") ||
		!strings.Contains(strings.Join(hints, ""), "go mod tidy") {
		t.Errorf("got %v (hints %q)", err, hints)
	}
}

func TestReplacedDirectoriesAreCompiledIn(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, framework(t, p))
	dir := t.TempDir()
	files := native()
	files["go.mod"] = strings.NewReplacer("example.com/third v1.2.0", "example.com/lib v0.0.0",
		"example.com/third => ../nowhere", "example.com/lib => ../lib").Replace(files["go.mod"])
	files["pkg/native.go"] = strings.NewReplacer("example.com/third", "example.com/lib", "third.Name",
		"lib.Name").Replace(files["pkg/native.go"])
	writeFiles(t, filepath.Join(dir, "plugin"), files)
	writeFiles(t, filepath.Join(dir, "lib"),
		map[string]string{"go.mod": "module example.com/elsewhere\n", "lib.go": "package lib\n\nconst Name = \"lib\"\n"})
	o := p.options(t)
	o.Plugins = []plugins.Plugin{{Dir: filepath.Join(dir, "plugin", "pkg")}}

	result := mustRun(t, o)

	var linked []string
	for _, m := range result.Info.Modules {
		linked = append(linked, m.Path)
	}
	if !slices.Contains(linked, "example.com/lib") {
		t.Errorf("linked: %q", linked)
	}
	if err := os.RemoveAll(filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	if err := mustRefuse(t, o); !strings.Contains(err.Error(), "replaces example.com/lib with ../lib") {
		t.Errorf("got %v", err)
	}
}

func TestModuleThatIsNotServedIsNamed(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	o.Plugins = []plugins.Plugin{{Module: "example.com/none", Version: "v1.0.0"}}
	if err := mustRefuse(t, o); !strings.Contains(err.Error(), "does not serve example.com/none@v1.0.0") {
		t.Errorf("got %v", err)
	}
}
