package plugins

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

func readArchive(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// pluginDirs writes the directories of plugins.txtar and returns where they are.
func pluginDirs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range readArchive(t, "plugins.txtar").Files {
		write(t, filepath.Join(dir, filepath.FromSlash(file.Name)), string(file.Data))
	}
	return dir
}

// apiSources returns the sources of a fake package scheduler.
func apiSources(t *testing.T) fs.FS {
	t.Helper()
	sources := fstest.MapFS{}
	for _, file := range readArchive(t, "api.txtar").Files {
		sources[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return sources
}

func readPlugins(t *testing.T, name string, plugins ...Plugin) ([]Info, error) {
	t.Helper()
	release, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := versions.Select(release)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Read(t.Context(), Options{
		Release: release, Rules: rules, Plugins: plugins, Sources: apiSources(t),
		Platform: Platform{OS: "linux", Arch: "amd64", Tags: rules.BuildTags, Go: rules.Go},
	})
	if err != nil {
		return nil, err
	}
	return set.InfosOf(plugins), nil
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Plugin{
		"builtin:blockall":                       {Builtin: "blockall"},
		"builtin:blockall=Gate":                  {Builtin: "blockall", Name: "Gate"},
		"./x":                                    {Dir: "./x"},
		"..":                                     {Dir: ".."},
		"/abs/x":                                 {Dir: "/abs/x"},
		"example.com/a@v1.2.3":                   {Module: "example.com/a", Version: "v1.2.3"},
		"example.com/a@v1.2.3:b/c":               {Module: "example.com/a", Version: "v1.2.3", Package: "example.com/a/b/c"},
		"example.com/a@v1.2.3:example.com/a/b/c": {Module: "example.com/a", Version: "v1.2.3", Package: "example.com/a/b/c"},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which reads as %+v, %v", text, got, again, err)
		}
	}
	_, err := Parse("git:https://github.com/x/y.git")
	if hints := strings.Join(problem.Hints(err), ""); !strings.HasSuffix(hints, ": github.com/x/y@VERSION") {
		t.Errorf("hint %q", hints)
	}
	for _, text := range []string{"", "x", "builtin:", "builtin:../x", "builtin:x=", "builtin:x=a/b", "builtin:=x", "example.com/a@latest", "example.com/a@v1",
		"@v1.0.0", "example.com/a@"} {
		_, err := Parse(text)
		if !problem.IsInvalid(err) {
			t.Errorf("%q: got %v, want an error that says how to write it", text, err)
		}
	}
}

func TestPluginsAreDescribedFromTheirSources(t *testing.T) {
	dir := pluginDirs(t)
	got, err := readPlugins(t, "v1.24.3", Plugin{Dir: filepath.Join(dir, "portable")},
		Plugin{Dir: filepath.Join(dir, "native", "sub")}, Plugin{Builtin: "blockall"})
	want := []Info{
		{Name: "ToyAware", Kind: KindPortable, Package: "example.com/portable", Origin: "dir example.com/portable",
			Points: []string{"filter", "score"}},
		{Name: "Native", Kind: KindNative, Package: "example.com/native/sub", Origin: "dir example.com/native",
			Points: []string{"score"}},
		{Name: "BlockAll", Kind: KindPortable, Package: APIModule + "/scheduler/plugins/blockall", Origin: "builtin:blockall",
			Points: []string{"filter"}, Rules: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Info{}, "SHA256")); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// The hash of a plugin changes with the files of its module, and with the files of a directory that
// replaces a module of its go.mod.
func TestPluginHashFollowsItsSources(t *testing.T) {
	dir := pluginDirs(t)
	sum := func() string {
		t.Helper()
		infos, err := readPlugins(t, "v1.24.3", Plugin{Dir: filepath.Join(dir, "portable")})
		if err != nil || len(infos[0].SHA256) != 64 {
			t.Fatalf("%+v, %v", infos, err)
		}
		return infos[0].SHA256
	}
	first := sum()
	if again := sum(); again != first {
		t.Errorf("the same sources have the hashes %s and %s", first, again)
	}
	write(t, filepath.Join(dir, "portable/more.go"), "package portable\n")
	second := sum()
	if second == first {
		t.Error("another file does not change the hash")
	}
	write(t, filepath.Join(dir, "other/go.mod"), "module example.com/other\n\ngo 1.18\n")
	write(t, filepath.Join(dir, "other/other.go"), "package other\n")
	mod, err := os.ReadFile(filepath.Join(dir, "portable", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "portable/go.mod"), string(mod)+"\nreplace example.com/other => ../other\n")
	third := sum()
	write(t, filepath.Join(dir, "other/other.go"), "package other\n\nconst Changed = true\n")
	if changed := sum(); third == second || changed == third {
		t.Error("the directory of a replacement does not change the hash")
	}
}

func TestPluginsThatSignPodsAreFound(t *testing.T) {
	dir := pluginDirs(t)
	for name, signs := range map[string]bool{"signing": true, "native135": true, "portable": false} {
		infos, err := readPlugins(t, "v1.35.4", Plugin{Dir: filepath.Join(dir, name)})
		if err != nil || infos[0].Signs != signs {
			t.Errorf("%s: %+v, %v", name, infos, err)
		}
	}
}

// Otherwise no pod of a profile with them would be batched.
func TestBundledPluginsThatFilterOrScoreSignPods(t *testing.T) {
	sources := os.DirFS("../../../..")
	names, err := Builtins(sources)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	release := versions.Releases()[0]
	rules, err := versions.Select(release)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Release: release, Rules: rules, Sources: sources,
		Platform: Platform{OS: "linux", Arch: "amd64", Go: rules.Go}}
	for _, name := range names {
		o.Plugins = append(o.Plugins, Plugin{Builtin: name})
	}
	set, err := Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range set.Infos() {
		if !info.Signs && slices.ContainsFunc(info.Points, func(point string) bool {
			return slices.Contains([]string{"preFilter", "filter", "preScore", "score"}, point)
		}) {
			t.Errorf("%s does not sign pods", info.Name)
		}
	}
}

func TestInvalidPluginsAreRefusedBeforeCompiling(t *testing.T) {
	dir := pluginDirs(t)
	for name, test := range map[string]struct {
		release string
		dirs    string
		want    string
		hint    string
	}{
		"newer than the native plugin": {"v1.29.2", "native/sub",
			"written for Kubernetes 1.20 to 1.28 and does not fit v1.29.2", "plugin new"},
		"older than the native plugin": {"v1.24.3", "native133",
			"written for Kubernetes 1.33 and does not fit v1.24.3: func Score", ""},
		"a point that the release lacks": {"v1.24.3", "early", "extension point PreEnqueue is not in Kubernetes 1.24", ""},
		"another form": {"v1.24.3", "misformed",
			"misformed/misformed.go:13:16: the signature of method Filter of Plugin differs from that of scheduler.FilterPlugin",
			"Filter(context.Context, scheduler.State, *scheduler.Pod) *scheduler.Status"},
		"an interface":     {"v1.24.3", "behind", "New returns (scheduler.Plugin, error)", "plugin's own type"},
		"no New":           {"v1.24.3", "nonew", "has no func New", "scheduler.Handle"},
		"no constant Name": {"v1.24.3", "noname", "is a var, not a constant", "const Name"},
		"a New that makes no plugin": {"v1.24.3", "strange",
			"strange.go:5:1: func New(string) error is not the factory of a plugin", ""},
		"an in-tree name": {"v1.24.3", "shadow", "has an in-tree plugin NodeName", ""},
		"twice":           {"v1.24.3", "portable portable", "has a plugin ToyAware too", ""},
		"no Go":           {"v1.24.3", "syntax", "syntax/syntax.go:3:11: ", ""},
		"a program":       {"v1.24.3", "program", "is a program", ""},
		"no module":       {"v1.24.3", "loose", "go.mod", "plugin new"},
		"no directory":    {"v1.24.3", "none", "no such directory", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var plugins []Plugin
			for directory := range strings.FieldsSeq(test.dirs) {
				plugins = append(plugins, Plugin{Dir: filepath.Join(dir, directory)})
			}
			_, err := readPlugins(t, test.release, plugins...)
			hints := strings.Join(problem.Hints(err), "\n")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(hints, test.hint) {
				t.Errorf("got %v (hints %q), want %q and %q", err, hints, test.want, test.hint)
			}
		})
	}
	_, err := readPlugins(t, "v1.24.3", Plugin{Builtin: "nosuch"})
	if err == nil || !strings.Contains(err.Error(), "no bundled plugin") ||
		!strings.Contains(strings.Join(problem.Hints(err), ""), "blockall") {
		t.Errorf("got %v", err)
	}
}

func TestAPluginThatNeedsCIsRefusedUnlessItHasAnotherFile(t *testing.T) {
	const head, rest = "package c\n\nimport \"C\"\n", "\n\nconst Name = \"C\"\n"
	cases := map[string]struct {
		files  map[string]string
		refuse bool
	}{
		"one file":         {map[string]string{"c.go": head + rest}, true},
		"one of two":       {map[string]string{"a.go": "package c\n" + rest, "c.go": head}, true},
		"with a fallback":  {map[string]string{"c.go": head, "d.go": "//go:build !cgo\n\npackage c\n" + rest}, false},
		"with constraints": {map[string]string{"c.go": "//go:build cgo\n\n" + head, "d.go": "package c\n" + rest}, false},
		"in a test":        {map[string]string{"c_test.go": head, "d.go": "package c\n" + rest}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/c\n\ngo 1.21\n")
			for file, text := range c.files {
				write(t, filepath.Join(dir, file), text)
			}
			_, err := readPlugins(t, "v1.24.3", Plugin{Dir: dir})
			if err == nil || strings.Contains(err.Error(), `imports "C"`) != c.refuse {
				t.Errorf("got %v, which must name cgo: %t", err, c.refuse)
			}
		})
	}
}

func TestBundledPluginIsRegisteredByAnotherName(t *testing.T) {
	got, err := readPlugins(t, "v1.24.3", Plugin{Builtin: "blockall", Name: "Gate"})
	if err != nil || len(got) != 1 || got[0].Name != "Gate" || got[0].Origin != "builtin:blockall=Gate" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = readPlugins(t, "v1.24.3", Plugin{Builtin: "blockall", Name: "Gate"}, Plugin{Builtin: "blockall"})
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "is compiled in as ") {
		t.Errorf("twice: got %v", err)
	}
	_, err = readPlugins(t, "v1.24.3", Plugin{Dir: filepath.Join(pluginDirs(t), "portable"), Name: "Gate"})
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "only bundled plugins can be renamed") {
		t.Errorf("a directory: got %v", err)
	}
}

// Every form that the table of the framework's signatures has is one that a
// native plugin may be written in, and none overlaps another.
func TestFrameworkSignaturesDoNotOverlap(t *testing.T) {
	known := map[string]bool{"PostFilter": true} // one of its forms was an alias for three releases
	for i, a := range extensionMethods {
		for _, b := range extensionMethods[i+1:] {
			if a.name == b.name && !known[a.name] && !(span{a.from, a.until}).and(span{b.from, b.until}).empty() {
				t.Errorf("%s%s and %s overlap", a.name, a.text, b.text)
			}
		}
	}
}

func TestLinksOutOfAModuleAreRefused(t *testing.T) {
	dir := pluginDirs(t)
	outside := filepath.Join(t.TempDir(), "outside.go")
	write(t, outside, "package portable\n")
	inside := filepath.Join(dir, "portable", "linked.go")
	if err := os.Symlink(outside, inside); err != nil {
		t.Fatal(err)
	}
	_, err := readPlugins(t, "v1.24.3", Plugin{Dir: filepath.Join(dir, "portable")})
	if err == nil || !strings.Contains(err.Error(), "linked.go is a symbolic link") {
		t.Errorf("got %v", err)
	}
}

func TestModuleHasOnlyFilesThatCanBeCompiled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n", "a.go": "package m\n", "a_test.go": "package m\n", "README.md": "x",
		"vendor/v/v.go": "package v\n", "testdata/t.go": "package t\n", ".git/g.go": "package g\n",
		"nested/go.mod": "module n\n", "nested/n.go": "package n\n",
		"sub/s.go": "package sub\n\nimport _ \"embed\"\n\n//go:embed data/*\nvar s string\n", "sub/data/one.txt": "1",
		"sub/other.txt": "2",
		"sub/s_test.go": "package sub\n\n//go:embed other.txt\nvar o string\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	m, err := readModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.go", "sub/data/one.txt", "sub/s.go"}, m.names()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The extender is not part of a scheduler: a change of it gives no scheduler with plugins another
// name or other bytes.
func TestSchedulersDoNotHoldTheExtender(t *testing.T) {
	files, err := readSources(os.DirFS("../../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if strings.HasPrefix(name, extenderDir+"/") {
			t.Errorf("%s would be compiled into schedulers", name)
		}
	}
}

func TestHashDependsOnTheSources(t *testing.T) {
	dir := pluginDirs(t)
	plugins := []Plugin{{Dir: filepath.Join(dir, "portable")}, {Builtin: "blockall"},
		{Module: "example.com/a", Version: "v1.0.0"}}
	sum := func(plugins []Plugin, imports ...string) string {
		t.Helper()
		got, err := Hash(plugins, imports, apiSources(t))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := sum(plugins)
	if none := sum(nil); none != "" || first == "" {
		t.Errorf("hash %q, without plugins %q", first, none)
	}
	reversed := slices.Clone(plugins)
	slices.Reverse(reversed)
	if sum(reversed) != first {
		t.Error("the order changes the hash")
	}
	if sum(plugins, "example.com/a/scheme") == first {
		t.Error("an import does not change the hash")
	}
	write(t, filepath.Join(dir, "portable", "more.go"), "package portable\n")
	if sum(plugins) == first {
		t.Error("a source does not change the hash")
	}
}

func TestOnlyNamesOfCopiedFilesAreReplaced(t *testing.T) {
	s := &Set{
		modules: []*pluginModule{{dir: "plugins/0", shownAs: "./mine"}}, api: &pluginModule{shownAs: APIModule},
	}
	const got = "# github.com/pmk-sched/pmk-sched/scheduler/adapter\npmk-sched/scheduler/adapter/a.go:1:2: x\n" +
		"./plugins/0/sub/a.go:3:4: y\nplugins/1/a.go:5:6: z"
	const want = "# github.com/pmk-sched/pmk-sched/scheduler/adapter\n" +
		"github.com/pmk-sched/pmk-sched/scheduler/adapter/a.go:1:2: x\n" +
		"./mine/sub/a.go:3:4: y\nplugins/1/a.go:5:6: z"
	text, inPlugins := s.Original(got)
	if diff := cmp.Diff(want, text); diff != "" || !inPlugins {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
