package plugins_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

func TestFilesAreSelectedByTheSuffixesOfTheirNames(t *testing.T) {
	names := []string{"all.go", "all_test.go", "new_from24.go", "old_before24.go", "some_from22_before30.go", "README.md",
		"with_21.go", "with_words.go"}
	for minor, want := range map[int][]string{
		20: {"all.go", "old_before24.go", "with_21.go", "with_words.go"},
		23: {"all.go", "old_before24.go", "some_from22_before30.go", "with_21.go", "with_words.go"},
		24: {"all.go", "new_from24.go", "some_from22_before30.go", "with_21.go", "with_words.go"},
		30: {"all.go", "new_from24.go", "with_21.go", "with_words.go"},
	} {
		if diff := cmp.Diff(want, plugins.AdapterFiles(minor, names)); diff != "" {
			t.Errorf("1.%d: %s", minor, diff)
		}
	}
}

// selectedDirs are the directories whose files are selected by release.
func selectedDirs() []string {
	return []string{"../../../../scheduler", "../../../../scheduler/adapter"}
}

// pinnedMinor is the minor of k8s.io/kubernetes in this project's go.mod.
const pinnedMinor = 36

func TestFilesForOtherReleasesAreNotCompiledHere(t *testing.T) {
	for _, dir := range selectedDirs() {
		for name, source := range sourceFiles(t, dir) {
			here := len(plugins.AdapterFiles(pinnedMinor, []string{name})) == 1
			if excluded := string(plugins.AdapterSource(source)) != string(source); excluded == here {
				t.Errorf("%s: for 1.%d: %v, excluded from this project's build: %v", name, pinnedMinor, here, excluded)
			}
		}
	}
}

// Only the files for the pinned release are compiled in this project. For the other releases this
// test finds names that are declared twice or not at all.
func TestFilesOfEveryMinorDeclareEachNameOnce(t *testing.T) {
	for _, dir := range selectedDirs() {
		t.Run(filepath.Base(dir), func(t *testing.T) { checkDeclarations(t, sourceFiles(t, dir)) })
	}
}

func checkDeclarations(t *testing.T, files map[string][]byte) {
	names := slices.Sorted(maps.Keys(files))
	for minor := plugins.OldestMinor; minor <= plugins.NewestMinor; minor++ {
		declared, used := map[string]string{}, map[string]string{}
		for _, name := range plugins.AdapterFiles(minor, names) {
			file, err := parser.ParseFile(token.NewFileSet(), name, files[name], 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range declarations(file) {
				if other, twice := declared[declaration]; twice {
					t.Errorf("1.%d: %s is declared in %s and %s", minor, declaration, other, name)
				}
				declared[declaration] = name
			}
			for _, identifier := range file.Unresolved {
				if !imports(file, identifier.Name) && types.Universe.Lookup(identifier.Name) == nil {
					used[identifier.Name] = name
				}
			}
		}
		for identifier, name := range used {
			if declared[identifier] == "" {
				t.Errorf("1.%d: %s uses %s, which no file for this minor declares", minor, name, identifier)
			}
		}
	}
}

func sourceFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// declarations returns the names that a file declares: a method as Type.Method.
func declarations(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				receiver := d.Recv.List[0].Type
				if star, ok := receiver.(*ast.StarExpr); ok {
					receiver = star.X
				}
				name = receiver.(*ast.Ident).Name + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.Name != "_" {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// imports reports whether an identifier is the name of an import.
func imports(file *ast.File, identifier string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		if spec.Name != nil {
			return spec.Name.Name == identifier
		}
		directory := path.Base(strings.Trim(spec.Path.Value, `"`))
		return directory == identifier || identifier == "klog" && directory == "v2"
	})
}

func TestComposeNamesTheStructsAndPointsOfAPlugin(t *testing.T) {
	for _, c := range []struct {
		name    string
		minor   int
		methods []string
		want    plugins.Composition
		wantErr string
	}{
		{"score with normalization", 24, []string{"Name", "NormalizeScore", "Score", "Helper"}, plugins.Composition{
			Structs: []string{"ScorePoint"}, Points: []string{"Score"}}, ""},
		{"in the framework's order", 37, []string{"Less", "Bind", "Unreserve", "Reserve"}, plugins.Composition{
			Structs: []string{"QueueSortPoint", "ReservePoint", "BindPoint"}, Points: []string{"QueueSort", "Reserve",
				"Bind"}}, ""},
		{"events are not configured", 20, []string{"Filter", "EventsToRegister"}, plugins.Composition{
			Structs: []string{"FilterPoint", "EventsPoint"}, Points: []string{"Filter"}}, ""},
		{"sign is not configured", 37, []string{"Score", "Sign"}, plugins.Composition{
			Structs: []string{"ScorePoint", "SignPoint"}, Points: []string{"Score"}}, ""},
		{"sign before batching", 20, []string{"Score", "Sign"}, plugins.Composition{
			Structs: []string{"ScorePoint", "SignPoint"}, Points: []string{"Score"}}, ""},
		{"prefilter from 1.24", 24, []string{"PreFilter", "AddPod", "RemovePod"}, plugins.Composition{
			Structs: []string{"PreFilterPoint"}, Points: []string{"PreFilter"}}, ""},
		{"prefilter before 1.24", 23, []string{"PreFilter"}, plugins.Composition{
			Structs: []string{"PreFilterPoint", "NodeSetPoint"}, Points: []string{"PreFilter", "Filter"}}, ""},
		{"prefilter and filter before 1.24", 23, []string{"PreFilter", "Filter"}, plugins.Composition{
			Structs: []string{"PreFilterPoint", "FilterPoint"}, Points: []string{"PreFilter", "Filter"}}, ""},
		{"preenqueue from 1.26", 26, []string{"PreEnqueue"}, plugins.Composition{
			Structs: []string{"PreEnqueuePoint"}, Points: []string{"PreEnqueue"}}, ""},
		{"preenqueue before 1.26", 25, []string{"PreEnqueue"}, plugins.Composition{}, "needs 1.26 or newer"},
		{"preflight from 1.34", 37, []string{"PreBind", "PreBindPreFlight"}, plugins.Composition{
			Structs: []string{"PreBindPoint"}, Points: []string{"PreBind"}}, ""},
		{"preflight before 1.34", 20, []string{"PreBind", "PreBindPreFlight"}, plugins.Composition{
			Structs: []string{"PreBindPoint"}, Points: []string{"PreBind"}}, ""},
		{"preflight only", 37, []string{"Filter", "PreBindPreFlight"}, plugins.Composition{}, "never called"},
		{"part of a point", 30, []string{"Reserve"}, plugins.Composition{}, "no method Unreserve"},
		{"part of the optional methods", 30, []string{"PreFilter", "AddPod"}, plugins.Composition{}, "no method RemovePod"},
		{"optional method only", 30, []string{"NormalizeScore", "Filter"}, plugins.Composition{}, "never called"},
		{"no extension point", 30, []string{"Name"}, plugins.Composition{}, "implements no extension point"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := plugins.Compose(c.minor, c.methods)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("got %v, want %q", err, c.wantErr)
			}
		})
	}
}
